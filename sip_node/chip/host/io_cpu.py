"""The IO_CPU: spreads a kernel launch over the cubes and stamps the time at which its PEs start together."""

from runtime.core.requests import KernelLaunchMsg, PerPe
from runtime.core.simtime import ps_from_ns, serialisation_ps
from runtime.core.trace import OpRecord
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.host.commands import CubeCommand
from sip_node.chip.host.relay_cpu import RelayCpu
from sip_node.chip.kernel import PeLaunch


class IoCpu(RelayCpu):
    """One IO_CPU. `launch_margin_ns` is added to the longest way so that contention does not make a PE late."""

    def _commanded(self, packet: Packet) -> None:
        assert isinstance(packet.body, KernelLaunchMsg)
        launch = packet.body
        nbytes = KernelLaunchMsg.HEADER_BYTES + KernelLaunchMsg.ARGUMENT_BYTES * len(
            launch.arguments
        )
        margin_ps = ps_from_ns(self._chip.topology.sip.io_chiplet.io_cpu.launch_margin_ns)
        start_ps = self._chip.engine.now_ps + self._longest_way_ps(launch, nbytes) + margin_ps
        self._chip.send_bounds.launched(launch.pes, start_ps, launch.thread, launch.queues)
        commands: list[tuple[int, object, int]] = []
        for cube, pes in _by_cube(launch.pes).items():
            command = CubeCommand(
                tuple((pe, self._order(launch, (cube, pe), start_ps), nbytes) for pe in pes)
            )
            commands.append((self._chip.graph.m_cpu(cube), command, command.nbytes))
        self._chip.log.add(
            OpRecord("io_cpu", f"launch {launch.name}", self._chip.engine.now_ps, start_ps)
        )
        self._port.forward(packet, commands)

    def _order(self, launch: KernelLaunchMsg, place: tuple[int, int], start_ps: int) -> PeLaunch:
        arguments = tuple(
            each.values[place] if isinstance(each, PerPe) else each for each in launch.arguments
        )
        cubes = _by_cube(launch.pes)
        size = len(cubes[place[0]]), len(cubes)
        return PeLaunch(
            launch.name,
            launch.kernel,
            arguments,
            start_ps,
            *size,
            launch.queues,
            launch.call,
            launch.line,
        )

    def _longest_way_ps(self, launch: KernelLaunchMsg, nbytes: int) -> int:
        """No PE gets its order later than this without contention: every copy serialised at the narrowest link it shares."""
        topology, routes = self._chip.topology, self._chip.routes
        io = topology.sip.io_chiplet
        down_gbs = min(
            io.noc.bw_gbs,
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
        return all_down_ps + max(
            routes.route(self._node, self._chip.graph.m_cpu(cube)).latency_ps
            + len(pes) * serialisation_ps(nbytes, spread_gbs)
            + max(
                routes.route(self._chip.graph.m_cpu(cube), self._chip.graph.pe(cube, pe)).latency_ps
                for pe in pes
            )
            for cube, pes in cubes.items()
        )


def _by_cube(places: tuple[tuple[int, int], ...]) -> dict[int, list[int]]:
    cubes: dict[int, list[int]] = {}
    for cube, pe in sorted(places):
        cubes.setdefault(cube, []).append(pe)
    return cubes
