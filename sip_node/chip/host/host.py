"""The host side of a SIP: sends commands to its IO_CPU, without waiting for earlier ones.

A command leaves the host as soon as that is free: it needs `copy_overhead_ns` for a copy and
`launch_overhead_ns` for any other one. Its packets travel to the IO_CPU, where they wait until the
command may begin (`io_cpu`). The host computes for which commands it waits (`Streams`), and sends
their numbers along.

    program   submit C1, C2, C3
    host      C1 --> C2 --> C3 -->                        an overhead each, one after another
    IO_CPU          C1 |=== runs ===| C2 |=== runs ===|   C2 is there when C1 ends
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from runtime.core.device import Handle
from runtime.core.requests import (
    IpcqInitMsg,
    KernelLaunchMsg,
    MemoryReadMsg,
    MemoryWriteMsg,
    MmuMapMsg,
    PeDmaMsg,
    Request,
    Transfer,
)
from runtime.core.run_tables import Cause
from runtime.core.simtime import ps_from_ns
from runtime.core.trace import OpRecord
from runtime.model.jitter import COMMAND, ENGINE, START, Jitter
from runtime.wire.reports import OpenTransfer
from sip_node.chip.completion import Completion
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.host.command_orders import CommandOrders
from sip_node.chip.host.commands import (
    CommandHeader,
    CubeCommand,
    ExtentRun,
    HostRequest,
    PeInstall,
    PeMap,
    RequestDone,
)
from sip_node.chip.host.io_cpu import launch_bytes
from sip_node.chip.host.request_record import check_request, record_command, record_of
from sip_node.chip.host.streams import Command, Streams, resources_of
from sip_node.chip.records.op_log import OpLog


class _SentRequest(Struct):
    """A request that was sent: its index in its command (-1 for a command without requests), its
    transfer, and the bytes that it has received.
    """

    command: Command
    index: int
    transfer: FabricTransfer | None = None
    data: bytes = b""


class Host:
    """The host of one SIP, at fabric node `node`.

    `last_answer_ps` is the time of the last answer to a command, also one without an operation.
    """

    def __init__(self, chip: ChipContext, node: int) -> None:
        self._chip, self._node, self._engine = chip, node, chip.engine
        host = chip.topology.host
        self._launch_ps = ps_from_ns(host.launch_overhead_ns)
        self._copy_ps = ps_from_ns(host.of_a_copy_ns)
        self._free_ps = 0
        own, name, jitter = chip.topology, f"sip{chip.sip}.host", chip.topology.jitter
        self._start_skew = Jitter(own, f"{name} {START}", jitter.start_skew_ns)
        self._jitter = Jitter(own, f"{name} {COMMAND}", jitter.command_ns)
        self.streams = Streams()
        recorder = chip.log.recorder
        self._orders = None if recorder is None else CommandOrders(recorder)
        self._open: dict[int, _SentRequest] = {}
        self._tags = 0
        self._next_answer = Completion[None]()
        self.last_answer_ps = 0

    @property
    def sip(self) -> int:
        """The SIP of which it is the host."""
        return self._chip.sip

    @property
    def current(self) -> str:
        """The purpose of the earliest command that is not complete; empty when there is none."""
        command = self.streams.earliest
        return "" if command is None else command.why

    def open_transfers(self) -> tuple[OpenTransfer, ...]:
        """The sends and receives that are not complete, in the order of the calls."""
        return tuple(
            OpenTransfer(
                sip=self._chip.sip,
                peer=transfer.peer,
                sends=transfer.end == "send",
                tag=transfer.tag,
                call=launch.call,
                elements=transfer.elements,
                function=transfer.function,
                line=transfer.line,
                behind=self._behind(command),
                overlaps=self._overlaps(command, transfer),
                through=self._through(command),
            )
            for command in self.streams.open_commands
            if (launch := command.launch) is not None and (transfer := launch.transfer) is not None
        )

    def _behind(self, command: Command) -> str:
        holding = self.streams.holding(command)
        if holding is None:
            return ""
        launch = holding.launch
        return launch.call if launch is not None and launch.transfer is not None else holding.why

    def _through(self, command: Command) -> str:
        first = self.streams.first_of(command)
        # The mapping of the tensor is a command of the same stream.
        while first is not None and first.stream == command.stream:
            first = self.streams.first_of(first)
        if first is None or first.transfer is not None:
            return ""
        return first.why if first is not self.streams.holding(command) else ""

    def _overlaps(self, command: Command, transfer: Transfer) -> bool:
        holding = self.streams.holding(command)
        earlier = None if holding is None else holding.transfer
        # Addresses are those of the rank, so different tensors share none.
        return earlier is not None and not transfer.is_independent_of(earlier)

    def start(self, program: Callable[[], None]) -> None:
        """Start the program of the rank."""
        skew_ps = self._start_skew.next_ps() if self._start_skew.bound_ps else 0

        def late() -> None:
            self.log.add(OpRecord(ENGINE, START, 0, skew_ps))
            program()

        self._engine.at(skew_ps, late if skew_ps else program)

    def order_after(self, stream: int, handles: Sequence[Handle]) -> None:
        """The later commands of `stream` wait for these commands."""
        self.streams.order_after(stream, handles)
        if self._orders is not None:
            self._orders.order_after(stream, handles)

    def order_after_stream(self, stream: int, other: int) -> None:
        """The later commands of `stream` wait for what the next one of `other` would wait for."""
        self.streams.order_after_stream(stream, other)
        if self._orders is not None:
            self._orders.order_after_stream(stream, other)

    def preceding(self, stream: int | None) -> list[int]:
        """All commands, answered or not, that the next one of `stream` waits for as the next in it;
        without a stream, the last command of every stream. None without records.
        """
        orders = self._orders
        if orders is None:
            return []
        return orders.latest() if stream is None else orders.preceding(stream)

    def program_waits(self, command: Command | None) -> None:
        """The rank program submits nothing before the answer to a command; None: to any."""
        self._chip.send_bounds.commands.rank_waits(None if command is None else command.number)

    def program_ended(self) -> None:
        """The rank program submits nothing more."""
        self._chip.send_bounds.commands.rank_ended()

    def next_answer(self) -> Completion[None]:
        """Completes when the next command is answered."""
        return self._next_answer

    def compute(self, name: str, duration_ps: int) -> Completion[None]:
        """Completes when the host has computed for a time; the rank program waits for it."""
        computed, start_ps = Completion[None](), self._engine.now_ps

        def end() -> None:
            self.log.add(OpRecord("host", name, start_ps, self._engine.now_ps))
            computed.complete(None)

        self._engine.at(start_ps + duration_ps, end)
        return computed

    @property
    def log(self) -> OpLog:
        """The op log of the SIP."""
        return self._chip.log

    def submit(
        self,
        requests: Sequence[Request],
        why: str,
        *,
        tensors: frozenset[str] = frozenset(),
        stream: int,
    ) -> Command:
        """Append a command to a stream and send it.

        Raises what `check_request` raises, before anything is sent.
        """
        for request in requests:
            check_request(request, self._chip, why)
        now_ps, count = self._engine.now_ps, len(requests)
        # One command after the other: the host is a server whose time of service does not depend
        # on the number of requests, as a driver rings one doorbell for all of them.
        overhead_ps = self._copy_ps if _moves_data(requests) else self._launch_ps
        departs_ps = max(now_ps, self._free_ps) + overhead_ps
        if self._jitter.bound_ps:
            on_time_ps, departs_ps = departs_ps, departs_ps + self._jitter.next_ps()
            self.log.add(OpRecord(ENGINE, COMMAND, on_time_ps, departs_ps))
        self._free_ps = departs_ps
        command = Command(
            requests=tuple(requests),
            submitted_ps=now_ps,
            results=[b""] * count,
            why=why,
            stream=stream,
            resources=resources_of(requests, tensors),
            # A command without requests is one packet, which has an answer too.
            left=max(count, 1),
            departed_ps=departs_ps,
        )
        self.streams.submit(command)
        if self._orders is not None:
            self._orders.submitted(command)
        self._chip.send_bounds.commands.submitted(
            command.number, stream, command.waits_for, departs_ps, requests
        )
        # As an event of its own: the rank program that submits is not in the event loop.
        self._engine.at(departs_ps, self._send, command)
        return command

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Take an answer to one of our requests."""
        # The transfer is complete with its last packet.
        if packet.last:
            self._engine.at(tail_ps, self.answered, packet.transfer)

    def _send(self, command: Command) -> None:
        header = CommandHeader(command.number, command.waits_for, command.left)
        if not command.requests:
            tag = self._opened(command, -1)
            self._chip.fabric.send(
                self._control(HostRequest(header), 0, tag), self._node, self._engine.now_ps
            )
        for index, request in enumerate(command.requests):
            tag = self._opened(command, index)
            for packet in self._packets(request, header, tag):
                self._open[tag].transfer = packet.transfer
                self._chip.fabric.send(packet, self._node, self._engine.now_ps)

    def _opened(self, command: Command, index: int) -> int:
        self._tags += 1
        self._open[self._tags] = _SentRequest(command, index)
        return self._tags

    def _packets(self, request: Request, header: CommandHeader, tag: int) -> Iterator[Packet]:
        chip = self._chip
        match request:
            case MemoryWriteMsg():
                target = chip.locate(request.address)
                yield from self._write(request, HostRequest(header, target), tag)
            case MemoryReadMsg():
                target = chip.locate(request.address)
                yield self._read(request, HostRequest(header, target), tag)
            case KernelLaunchMsg():
                order = HostRequest(header, (chip.sip, chip.graph.io_cpu), request)
                yield self._control(order, launch_bytes(request), tag)
            case PeDmaMsg() | MmuMapMsg() | IpcqInitMsg():
                command = _cube_command(request)
                target = (chip.sip, chip.graph.m_cpu(request.cube))
                yield self._control(HostRequest(header, target, command), command.nbytes, tag)

    def _write(self, request: MemoryWriteMsg, body: HostRequest, tag: int) -> Iterator[Packet]:
        step = self._chip.topology.packet_bytes
        writing = self._transfer(Kind.WRITE, body, tag, request.nbytes)
        writing.address, writing.payload = request.address, request.data
        for start in range(0, request.nbytes, step):
            end = min(start + step, request.nbytes)
            yield Packet(writing, start, end - start, end == request.nbytes)

    def _read(self, request: MemoryReadMsg, body: HostRequest, tag: int) -> Packet:
        reading = self._transfer(Kind.READ, body, tag, request.nbytes)
        reading.address = request.address
        return Packet(reading, 0, self._chip.topology.control_bytes)

    def _control(self, body: HostRequest, nbytes: int, tag: int) -> Packet:
        size = max(nbytes, self._chip.topology.control_bytes)
        return Packet(self._transfer(Kind.CONTROL, body, tag, size), 0, size)

    def _transfer(self, kind: Kind, body: HostRequest, tag: int, total: int) -> FabricTransfer:
        """A transfer to the IO_CPU, which relays it."""
        return FabricTransfer(
            kind=kind,
            source_sip=self._chip.sip,
            source_node=self._node,
            sip=self._chip.sip,
            node=self._chip.graph.io_cpu,
            tag=tag,
            total=total,
            sent_ps=self._engine.now_ps,
            body=body,
        )

    def is_awaited(self, tag: int) -> bool:
        """Whether the rank program waits for the answer to the request with a tag, or for any."""
        return self._open[tag].command.finished.is_awaited or self._next_answer.is_awaited

    def answered(self, transfer: FabricTransfer) -> None:
        """The last byte of the last answer to a request has arrived."""
        if self._chip.launches is not None:
            self._chip.launches.answered(transfer)
        answered, answer = self._open.pop(transfer.tag), transfer.body
        assert isinstance(answer, RequestDone)
        if transfer.kind is Kind.DATA:
            answered.data = bytes(transfer.payload)
        command = answered.command
        # The longest kernel: those of one command run side by side.
        kernel_ps = answer.done.end_ps - answer.done.start_ps
        command.kernels_ps = max(command.kernels_ps, kernel_ps)
        command.released_ps, command.after = answer.released_ps, answer.after
        command.device_done_ps = max(command.device_done_ps, answer.end_ps)
        command.queued_ps = command.departed_ps - command.submitted_ps + answer.held_ps
        if command.requests:
            self._record(answered, answer)
        command.left -= 1
        if not command.left:
            self._complete(command)

    def _record(self, answered: _SentRequest, answer: RequestDone) -> None:
        command = answered.command
        request = command.requests[answered.index]
        command.results[answered.index] = answered.data
        if isinstance(request, MemoryWriteMsg):
            self.log.add_written(request.data)
        # A request that waited for others begins at its release: before that, the memory need not
        # have what it reads, and others may still read what it writes.
        start_ps = answer.released_ps if command.waits_for else command.departed_ps
        # The memory and the IO_CPU go on with the times of the request.
        train = None if answered.transfer is None else answered.transfer.train
        self.log.add(
            record_of(request, start_ps, self._engine.now_ps, answered.data),
            command.submitted_ps,
            Cause.COMMAND if command.waits_for else Cause.NONE,
            None if train is None else train.times,
        )

    def _complete(self, command: Command) -> None:
        # What the command held may be freed now, before a rank program that waits for it goes on.
        command.done, command.completed_ps, command.holds = True, self._engine.now_ps, ()
        self.last_answer_ps = self._engine.now_ps
        self.streams.complete(command)
        if self.log.recorder is not None:
            record_command(self.log.recorder, command)
        answered, self._next_answer = self._next_answer, Completion[None]()
        command.finished.complete(None)
        answered.complete(None)


def _moves_data(requests: Sequence[Request]) -> bool:
    """Whether a command is a copy: its requests move bytes of tensors, and launch nothing."""
    return any(
        isinstance(request, MemoryWriteMsg | MemoryReadMsg | PeDmaMsg) for request in requests
    )


def _cube_command(request: PeDmaMsg | MmuMapMsg | IpcqInitMsg) -> CubeCommand:
    """The orders for the PEs of a cube, with their sizes."""
    match request:
        case PeDmaMsg():
            return CubeCommand(((request.pe, request, PeDmaMsg.ENTRY_BYTES),))
        case MmuMapMsg():
            return CubeCommand(tuple(_map_orders(request)))
        case IpcqInitMsg():
            return CubeCommand(
                tuple(
                    (pe, PeInstall(request.table, queues), len(queues) * IpcqInitMsg.ENTRY_BYTES)
                    for pe, queues in request.queues
                )
            )


def _map_orders(request: MmuMapMsg) -> Iterator[tuple[int, PeMap, int]]:
    """(PE, order, bytes) for each PE; neighbours with the same extents share the order."""
    order: PeMap | None = None
    for pe, extents in request.extents:
        if order is None or order.run.extents is not extents:
            order = PeMap(ExtentRun(extents))
        yield pe, order, len(extents) * MmuMapMsg.ENTRY_BYTES
