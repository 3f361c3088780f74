"""The IO_CPU, the command processor: holds commands until they may begin, and launches kernels.

The host sends commands without waiting for answers. Links are FIFO, so when a command arrives, all
earlier ones have. It is released when the commands that it names are complete here: the last
M_CPU has reported the end of a kernel, or the last acknowledgement or byte has passed on its way to
the host. Those of one stream follow each other without a round trip to the host.

    host   --A, B-->  IO_CPU  --A-->         PEs or memory
                      holds B <--answer A--
           <--done A--        --B-->

A command that waits for nothing is relayed cut-through: its packets pass as they would pass a
router. The memory for commands that wait, and for the data of writes among them, is unlimited.

The launch commands reach the PEs at different times. So that a kernel starts on all of them
together, the IO_CPU stamps a time that no command can miss: now + longest route + margin.
"""

from bisect import bisect_left
from copy import copy
from dataclasses import dataclass, field
from math import inf

from msgspec import Struct, structs

from runtime.core.requests import KernelLaunchMsg, PerPe
from runtime.core.run_tables import NONE
from runtime.core.simtime import ps_from_ns
from runtime.core.trace import OpRecord
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.host.commands import (
    CommandDone,
    CommandHeader,
    CubeCommand,
    Gathering,
    HostRequest,
    RequestDone,
)
from sip_node.chip.host.cpu_port import CpuPort
from sip_node.chip.host.launch_events import GatheredAnswer, LaunchBegin
from sip_node.chip.kernel import LaunchBarrier, PeLaunch
from sip_node.chip.mapping.stored_ranges import StoredRanges
from sip_node.chip.records.packet_train import PacketTrain


@dataclass(eq=False)
class _HostCommand:
    """A command that is not complete: its packets that wait, and the commands that wait for it.

    It waits for `waits_for` commands, and `after` is the last of them; `left` of its requests are
    not complete.
    """

    header: CommandHeader
    received_ps: int
    left: int
    waits_for: int = 0
    released_ps: int = 0
    after: int = NONE
    held: list[tuple[Packet, int]] = field(default_factory=list[tuple[Packet, int]])
    waiters: "list[_HostCommand]" = field(default_factory=list["_HostCommand"])


class _ReleasedRequest(Struct):
    """A request that was released; `answers` are those of the M_CPUs to a launch.

    `request` is the transfer which relays it, `answer` the transfer which relays its answer.
    """

    command: _HostCommand
    answers: Gathering | None = None
    request: FabricTransfer | None = None
    answer: FabricTransfer | None = None


class IoCpu:
    """The IO_CPU of a SIP. The margin, `launch_margin_ns`, covers contention on the way to PEs.

    Its overhead is part of the route: the fabric adds it when a packet enters the node.
    """

    def __init__(self, chip: ChipContext, node: int) -> None:
        self._chip, self._node, self._engine = chip, node, chip.engine
        self._port = CpuPort(chip, node)
        self._commands: dict[int, _HostCommand] = {}
        # By the tag of the host, which no two requests share.
        self._requests: dict[int, _ReleasedRequest] = {}
        self._margin_ps = ps_from_ns(chip.topology.sip.io_chiplet.io_cpu.launch_margin_ns)
        # Most programs launch on few sets of PEs, many times.
        self._launched: dict[tuple[tuple[tuple[int, int], ...], int], _PesOfLaunch] = {}

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Take a request of the host, or an answer to one."""
        if packet.transfer.source_node == self._chip.graph.host:
            self._requested(packet, tail_ps)
        else:
            self._answered(packet, tail_ps)

    def _requested(self, packet: Packet, tail_ps: int) -> None:
        request = packet.transfer.body
        assert isinstance(request, HostRequest)
        header = request.command
        command = self._commands.get(header.number) or self._received(header)
        # Held here and not at the host: the next command of a stream begins without a round trip
        # over PCIe.
        if command.waits_for:
            command.held.append((packet, tail_ps))
        else:
            self._release(command, packet, tail_ps)

    def _received(self, header: CommandHeader) -> _HostCommand:
        """The first packet of a command has arrived."""
        now_ps = self._engine.now_ps
        command = _HostCommand(header, now_ps, header.requests, released_ps=now_ps)
        self._commands[header.number] = command
        for number in header.waits_for:
            # All earlier commands have arrived; one that is not here is complete.
            earlier = self._commands.get(number)
            if earlier is not None:
                earlier.waiters.append(command)
                command.waits_for += 1
        return command

    def _release(self, command: _HostCommand, packet: Packet, tail_ps: int) -> None:
        """Carry out a request, or relay a packet of it, whose last byte is here at `tail_ps`."""
        transfer, tail_ps = packet.transfer, max(tail_ps, self._engine.now_ps)
        request, tag = transfer.body, transfer.tag
        assert isinstance(request, HostRequest)
        opened = self._requests.get(tag)
        if opened is None:
            opened = self._requests[tag] = _ReleasedRequest(command)
        if request.target is None:
            self._engine.at(tail_ps, self._reached, tag)
        elif isinstance(request.order, KernelLaunchMsg):
            self._engine.at(tail_ps, LaunchBegin(self, tag, request.order))
        else:
            if opened.request is None:
                sip, node = request.target
                # The answer comes here, and not past the command processor to the host.
                opened.request = _relayed(transfer)
                opened.request.source_node = self._node
                opened.request.sip, opened.request.node = sip, node
                opened.request.body = request.order
            self._relay(packet, opened.request, tail_ps)

    def _reached(self, tag: int) -> None:
        """All before a command without requests is complete: answer with the time."""
        now_ps = self._engine.now_ps
        self.finish(tag, CommandDone(now_ps, now_ps))

    def _answered(self, packet: Packet, tail_ps: int) -> None:
        transfer = packet.transfer
        request = self._requests[transfer.tag]
        if request.answers is not None:
            self._engine.at(tail_ps, GatheredAnswer(self, transfer))
            return
        if request.answer is None:
            request.answer = _relayed(transfer)
            request.answer.sip, request.answer.node = self._chip.sip, self._chip.graph.host
            request.answer.body = None
        if packet.last:
            done = transfer.body if transfer.kind is Kind.CONTROL else CommandDone()
            assert isinstance(done, CommandDone)
            request.answer.body = _request_done(request.command, done, tail_ps)
            request.answer.payload = transfer.payload
            self._engine.at(tail_ps, self._complete, transfer.tag)
        self._relay(packet, request.answer, tail_ps)

    def _relay(self, packet: Packet, transfer: FabricTransfer, tail_ps: int) -> None:
        """Send a packet on, as one of another transfer."""
        relayed = Packet(transfer, packet.begin, packet.size, packet.last)
        # For the records it is the same packet on a longer route.
        relayed.link_ps = packet.link_ps
        relayed.longest_ps, relayed.longest_link = packet.longest_ps, packet.longest_link
        self._chip.fabric.send(relayed, self._node, tail_ps)

    @property
    def sip(self) -> int:
        """The SIP of which it is the command processor."""
        return self._chip.sip

    def number_of(self, tag: int) -> int:
        """The number of the command of a request that was released."""
        return self._requests[tag].command.header.number

    def gathered(self, transfer: FabricTransfer) -> None:
        """An M_CPU has reported that the kernels of its cube have ended."""
        tag, cube_done = transfer.tag, transfer.body
        answers = self._requests[tag].answers
        assert isinstance(cube_done, CommandDone)
        assert answers is not None
        done = answers.add(cube_done)
        if done is not None:
            self.finish(tag, done)

    def finish(self, tag: int, done: CommandDone) -> None:
        """Answer a request that this CPU has carried out."""
        launches = self._chip.launches
        # It may be held at its end until those of other SIPs have got there.
        if launches is not None and launches.end(tag, done):
            return
        command = self._requests[tag].command
        answer = _request_done(command, done, self._engine.now_ps)
        self._port.send(self._chip.graph.host, answer, 0, tag)
        self._complete(tag)

    def _complete(self, tag: int) -> None:
        """A request is complete; with the last one of its command, release those that waited."""
        command = self._requests.pop(tag).command
        command.left -= 1
        if command.left:
            return
        number, now_ps = command.header.number, self._engine.now_ps
        del self._commands[number]
        self._chip.send_bounds.commands.completed(number, now_ps)
        # In order of submission, as they have arrived.
        for later in command.waiters:
            later.waits_for -= 1
            if not later.waits_for:
                later.released_ps, later.after = now_ps, number
                self._chip.send_bounds.commands.released(later.header.number, now_ps)
                held, later.held = later.held, []
                for packet, tail_ps in held:
                    self._release(later, packet, tail_ps)

    def launch(self, begin: LaunchBegin) -> None:
        """A launch begins."""
        chip, now_ps = self._chip, self._engine.now_ps
        if chip.launches is not None and chip.launches.begin(begin):
            return
        tag, launch, number = begin.tag, begin.launch, begin.number
        # The command for every PE has the size of the launch, and no packet is smaller than a
        # control packet.
        nbytes = max(launch_bytes(launch), chip.topology.control_bytes)
        known = self._launched.get((launch.pes, nbytes))
        if known is None:
            cubes = _by_cube(launch.pes)
            known = self._launched[launch.pes, nbytes] = (
                cubes,
                self._longest_route_ps(cubes, nbytes),
            )
        cubes, longest_ps = known
        differ = launch.grid is not None or any(
            isinstance(each, PerPe) for each in launch.arguments
        )
        # PEs that are near would else start first, and then wait for messages of those that are far
        # away.
        start_ps = now_ps + longest_ps + self._margin_ps
        # From here on these PEs may send; until now the bound for launches to come covered them.
        chip.send_bounds.stamped(number, launch, start_ps)
        # One PE cannot store to what another one stores to.
        stored = StoredRanges() if len(launch.pes) > 1 else None
        chip.log.add(OpRecord("io_cpu", f"launch {launch.name}", now_ps, start_ps))
        self._requests[tag].answers = Gathering(len(cubes))
        barrier = LaunchBarrier(cubes, stored)
        for cube, pes in cubes.items():
            order = _order(launch, start_ps, (len(pes), len(cubes)), barrier, number)
            command = CubeCommand(
                tuple(
                    [
                        (pe, _on_pe(order, launch, (cube, pe)) if differ else order, nbytes)
                        for pe in pes
                    ]
                )
            )
            self._port.send(chip.graph.m_cpu(cube), command, command.nbytes, tag)

    def _longest_route_ps(self, cubes: dict[int, list[int]], nbytes: int) -> int:
        """An upper bound for the time of the last command, were it alone on the chip.

        It serialises every copy at the narrowest link that copies share, on the way to the M_CPU
        and from there to the PEs.
        """
        topology, fabric, graph = self._chip.topology, self._chip.fabric, self._chip.graph
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
        if not graph.is_uniform:
            m_cpus = {cube: graph.m_cpu(cube) for cube in cubes}
            down_gbs = min(
                down_gbs, *(self._least_gbs(self._node, each) for each in m_cpus.values())
            )
            spread_gbs = min(
                spread_gbs,
                *(
                    self._least_gbs(m_cpus[cube], graph.pe(cube, pe))
                    for cube, pes in cubes.items()
                    for pe in pes
                ),
            )
        # All copies leave the IO_CPU by one link, one behind the other: the last one waits for the
        # bytes of all others. Latency counts once, since packets follow each other on the way.
        all_down_ps = sum(
            fabric.serialisation_ps(nbytes * len(pes), down_gbs) for pes in cubes.values()
        )

        def cube_ps(cube: int, pes: list[int]) -> int:
            m_cpu = graph.m_cpu(cube)
            return (
                fabric.latency_ps(self._node, m_cpu)
                + len(pes) * fabric.serialisation_ps(nbytes, spread_gbs)
                + max(fabric.latency_ps(m_cpu, graph.pe(cube, pe)) for pe in pes)
            )

        return all_down_ps + max(cube_ps(cube, pes) for cube, pes in cubes.items())

    def _least_gbs(self, source: int, target: int) -> float:
        """The least bandwidth of the links between two nodes."""
        links = self._chip.graph.links
        stages = self._chip.routes.route(source, target).stages
        return min(links[stage.link].bw_gbs or inf for stage in stages)


_PesOfLaunch = tuple[dict[int, list[int]], int]
"""The PEs of each cube, and the bound for the time of the last command."""


def _relayed(transfer: FabricTransfer) -> FabricTransfer:
    """The transfer by which packets of `transfer` are sent on."""
    relayed = copy(transfer)
    if transfer.train is not None:
        # On another route, whose links have other numbers; the times are those of the request.
        relayed.train = PacketTrain(transfer.train.times)
    return relayed


def _request_done(command: _HostCommand, done: CommandDone, end_ps: int) -> RequestDone:
    released_ps = command.released_ps
    held_ps = released_ps - command.received_ps
    return RequestDone(done, released_ps, held_ps, end_ps, command.after)


def launch_bytes(launch: KernelLaunchMsg) -> int:
    """The size of a launch, and of the command for one PE."""
    return KernelLaunchMsg.HEADER_BYTES + KernelLaunchMsg.ARGUMENT_BYTES * len(launch.arguments)


def _order(
    launch: KernelLaunchMsg,
    start_ps: int,
    size: tuple[int, int],
    barrier: LaunchBarrier,
    command: int,
) -> PeLaunch:
    """The command for the PEs of a cube; `size` is the number of these PEs, and that of cubes."""
    pes, cubes = size
    return PeLaunch(
        name=launch.name,
        kernel=launch.kernel,
        arguments=launch.arguments,
        start_ps=start_ps,
        pes=pes,
        cubes=cubes,
        thread=launch.thread,
        queues=launch.queues,
        call=launch.call,
        line=launch.line,
        stored=barrier.stored,
        transfer=launch.transfer,
        barrier=barrier,
        command=command,
    )


def _on_pe(order: PeLaunch, launch: KernelLaunchMsg, pe: tuple[int, int]) -> PeLaunch:
    """The command for the PE at (cube, pe), with its own arguments and programs."""
    own = (each.values[pe] if isinstance(each, PerPe) else each for each in launch.arguments)
    programs = None
    if launch.grid is not None:
        # `pes` is sorted.
        programs = launch.grid.dealt(bisect_left(launch.pes, pe), len(launch.pes))
    return structs.replace(order, arguments=tuple(own), programs=programs)


def _by_cube(pes: tuple[tuple[int, int], ...]) -> dict[int, list[int]]:
    """The PEs of each cube, sorted."""
    cubes: dict[int, list[int]] = {}
    # A fixed order: it decides which packet is first on the links.
    for cube, pe in sorted(pes):
        cubes.setdefault(cube, []).append(pe)
    return cubes
