"""The IO_CPU: distributes a kernel launch over the cubes, with one start time for all PEs.

The commands reach the PEs at different times. So that a kernel starts on all of them together, the
IO_CPU stamps a time that no command can miss: now + longest route + margin.
"""

from runtime.core.requests import KernelLaunchMsg, PerPe
from runtime.core.simtime import ps_from_ns, serialisation_ps
from runtime.core.trace import OpRecord
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.host.commands import CubeCommand
from sip_node.chip.host.relay_cpu import RelayCpu
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.stored_ranges import StoredRanges


class IoCpu(RelayCpu):
    """One IO_CPU. The margin, `launch_margin_ns`, covers contention: no PE receives it too late."""

    def _commanded(self, packet: Packet) -> None:
        assert isinstance(packet.body, KernelLaunchMsg)
        launch = packet.body
        chip, now_ps = self._chip, self._chip.engine.now_ps
        # The command for every PE has the size of the launch.
        nbytes = launch_bytes(launch)
        margin_ps = ps_from_ns(chip.topology.sip.io_chiplet.io_cpu.launch_margin_ns)
        start_ps = now_ps + self._longest_route_ps(launch, nbytes) + margin_ps
        # From here on these PEs may send; until now the bound for launches to come covered them.
        chip.send_bounds.launched(launch.pes, start_ps, launch.thread, launch.queues)
        # One PE cannot store to what another one stores to.
        stored = StoredRanges() if len(launch.pes) > 1 else None
        parts: list[tuple[int, object, int]] = []
        for cube, pes in _by_cube(launch.pes).items():
            command = CubeCommand(
                tuple((pe, _order(launch, (cube, pe), start_ps, stored), nbytes) for pe in pes)
            )
            parts.append((chip.graph.m_cpu(cube), command, command.nbytes))
        chip.log.add(OpRecord("io_cpu", f"launch {launch.name}", now_ps, start_ps))
        self._port.forward(packet, parts)

    def _longest_route_ps(self, launch: KernelLaunchMsg, nbytes: int) -> int:
        """An upper bound for the time of the last command, were it alone on the chip.

        It serialises every copy at the narrowest link that copies share, on the way to the M_CPU
        and from there to the PEs.
        """
        topology, routes, graph = self._chip.topology, self._chip.routes, self._chip.graph
        down_gbs = min(
            topology.sip.io_chiplet.noc.bw_gbs,
            topology.ucie.bw_gbs,
            topology.cube.noc.link_bw_gbs,
            topology.cube.m_cpu.to_router_bw_gbs,
        )
        spread_gbs = min(
            topology.cube.m_cpu.to_router_bw_gbs,
            topology.cube.noc.link_bw_gbs,
            topology.pe.to_router_bw_gbs,
        )
        cubes = _by_cube(launch.pes)
        all_down_ps = sum(serialisation_ps(nbytes * len(pes), down_gbs) for pes in cubes.values())

        def cube_ps(cube: int, pes: list[int]) -> int:
            m_cpu = graph.m_cpu(cube)
            return (
                routes.route(self._node, m_cpu).latency_ps
                + len(pes) * serialisation_ps(nbytes, spread_gbs)
                + max(routes.route(m_cpu, graph.pe(cube, pe)).latency_ps for pe in pes)
            )

        return all_down_ps + max(cube_ps(cube, pes) for cube, pes in cubes.items())


def launch_bytes(launch: KernelLaunchMsg) -> int:
    """The size of a launch, and of the command for one PE."""
    return KernelLaunchMsg.HEADER_BYTES + KernelLaunchMsg.ARGUMENT_BYTES * len(launch.arguments)


def _order(
    launch: KernelLaunchMsg, pe: tuple[int, int], start_ps: int, stored: StoredRanges | None
) -> PeLaunch:
    """The command for the PE at (cube, pe), with its own arguments."""
    cubes = _by_cube(launch.pes)
    return PeLaunch(
        name=launch.name,
        kernel=launch.kernel,
        arguments=tuple(
            each.values[pe] if isinstance(each, PerPe) else each for each in launch.arguments
        ),
        start_ps=start_ps,
        pes=len(cubes[pe[0]]),
        cubes=len(cubes),
        queues=launch.queues,
        call=launch.call,
        line=launch.line,
        stored=stored,
    )


def _by_cube(pes: tuple[tuple[int, int], ...]) -> dict[int, list[int]]:
    """The PEs of each cube, sorted."""
    cubes: dict[int, list[int]] = {}
    for cube, pe in sorted(pes):
        cubes.setdefault(cube, []).append(pe)
    return cubes
