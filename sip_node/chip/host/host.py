"""The host side of a SIP: sends batches of requests, in the order of two streams.

A request travels the modelled path: host, PCIe endpoint, IO_CPU and on. A batch begins when the
earlier batches for which it waits are complete (`Streams`); its requests run together.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from runtime.core.requests import (
    IpcqInitMsg,
    KernelLaunchMsg,
    MemoryReadMsg,
    MemoryWriteMsg,
    MmuMapMsg,
    PeDmaMsg,
    Request,
    StreamOrder,
)
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.chip.host.batch import Batch, Streams
from sip_node.chip.host.commands import CommandDone, CubeCommand, PeInstall, PeMap
from sip_node.chip.host.io_cpu import launch_bytes
from sip_node.chip.host.request_record import check_request, record_of


class _OpenRequest(Struct):
    """A request that was sent: its index in its batch, and the bytes that it has received."""

    batch: Batch
    index: int
    start_ps: int
    data: bytes = b""


class Host:
    """The host of one SIP, at fabric node `node`."""

    def __init__(self, chip: ChipContext, node: int) -> None:
        self._chip, self._node, self._engine = chip, node, chip.engine
        self._streams = Streams()
        self._open: dict[int, _OpenRequest] = {}
        self._tags = 0

    @property
    def current(self) -> str:
        """The purpose of the earliest batch that is not complete; empty when there is none."""
        batch = self._streams.earliest
        return "" if batch is None else batch.why

    def submit(
        self,
        requests: Sequence[Request],
        why: str,
        *,
        tensors: frozenset[str] = frozenset(),
        order: StreamOrder = StreamOrder.COMPUTE,
    ) -> Batch:
        """Append a batch to a stream."""
        now_ps, count = self._engine.now_ps, len(requests)
        batch = Batch(
            requests=tuple(requests),
            submitted_ps=now_ps,
            results=[b""] * count,
            why=why,
            tensors=tensors,
            order=order,
            left=count,
        )
        if self._streams.submit(batch):
            # As an event of its own: the rank program that submits is not in the event loop.
            self._engine.at(now_ps, self._begin, batch)
        return batch

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Take an answer to one of our requests."""
        request = self._open[packet.tag]
        if packet.kind is Kind.DATA:
            request.data += packet.payload
        if packet.last:
            self._engine.at(tail_ps, self._answered, packet)

    def _begin(self, batch: Batch) -> None:
        # The time of a batch starts now: it has only waited for its stream so far.
        batch.submitted_ps = self._engine.now_ps
        # A batch without requests marks a point in its stream, as an event does.
        if not batch.left:
            self._complete(batch)
        for index, request in enumerate(batch.requests):
            check_request(request, self._chip)
            self._tags += 1
            self._open[self._tags] = _OpenRequest(batch, index, self._engine.now_ps)
            for packet in self._packets(request, self._tags):
                self._chip.fabric.send(packet, self._node, self._engine.now_ps)

    def _packets(self, request: Request, tag: int) -> Iterator[Packet]:
        match request:
            case MemoryWriteMsg():
                yield from self._write(request, tag)
            case MemoryReadMsg():
                yield self._read(request, tag)
            case KernelLaunchMsg():
                io_cpu = self._chip.graph.io_cpu
                yield self._control(io_cpu, request, launch_bytes(request), tag)
            case PeDmaMsg() | MmuMapMsg() | IpcqInitMsg():
                command = _cube_command(request)
                m_cpu = self._chip.graph.m_cpu(request.cube)
                yield self._control(m_cpu, command, command.nbytes, tag)

    def _write(self, request: MemoryWriteMsg, tag: int) -> Iterator[Packet]:
        sip, node = self._chip.locate(request.address)
        step = self._chip.topology.packet_bytes
        for start in range(0, request.nbytes, step):
            end = min(start + step, request.nbytes)
            yield Packet(
                kind=Kind.WRITE,
                source_sip=self._chip.sip,
                source_node=self._node,
                sip=sip,
                node=node,
                size=end - start,
                address=request.address + start,
                tag=tag,
                total=request.nbytes,
                last=end == request.nbytes,
                sent_ps=self._engine.now_ps,
                payload=request.data[start:end],
            )

    def _read(self, request: MemoryReadMsg, tag: int) -> Packet:
        sip, node = self._chip.locate(request.address)
        return Packet(
            kind=Kind.READ,
            source_sip=self._chip.sip,
            source_node=self._node,
            sip=sip,
            node=node,
            size=self._chip.topology.control_bytes,
            address=request.address,
            tag=tag,
            total=request.nbytes,
            sent_ps=self._engine.now_ps,
        )

    def _control(self, node: int, body: object, nbytes: int, tag: int) -> Packet:
        size = max(nbytes, self._chip.topology.control_bytes)
        return Packet(
            kind=Kind.CONTROL,
            source_sip=self._chip.sip,
            source_node=self._node,
            sip=self._chip.sip,
            node=node,
            size=size,
            tag=tag,
            total=size,
            sent_ps=self._engine.now_ps,
            body=body,
        )

    def _answered(self, packet: Packet) -> None:
        """The last byte of the last answer to a request has arrived."""
        answered = self._open.pop(packet.tag)
        batch, now_ps = answered.batch, self._engine.now_ps
        request = batch.requests[answered.index]
        batch.results[answered.index] = answered.data
        if isinstance(packet.body, CommandDone):
            # The longest kernel: those of one batch run side by side.
            batch.kernels_ps = max(batch.kernels_ps, packet.body.end_ps - packet.body.start_ps)
        if isinstance(request, MemoryWriteMsg):
            self._chip.log.add_written(request.data)
        self._chip.log.add(record_of(request, answered.start_ps, now_ps, answered.data))
        batch.left -= 1
        if not batch.left:
            self._complete(batch)

    def _complete(self, batch: Batch) -> None:
        # What the batch held may be freed now, and the next batches of its streams begin before
        # the rank program that waits for it goes on.
        batch.done, batch.completed_ps, batch.holds = True, self._engine.now_ps, ()
        for later in self._streams.complete(batch):
            self._begin(later)
        batch.finished.complete(None)


def _cube_command(request: PeDmaMsg | MmuMapMsg | IpcqInitMsg) -> CubeCommand:
    """The orders for the PEs of a cube, with their sizes."""
    match request:
        case PeDmaMsg():
            return CubeCommand(((request.pe, request, PeDmaMsg.ENTRY_BYTES),))
        case MmuMapMsg():
            return CubeCommand(
                tuple(
                    (pe, PeMap(extents), len(extents) * MmuMapMsg.ENTRY_BYTES)
                    for pe, extents in request.extents
                )
            )
        case IpcqInitMsg():
            return CubeCommand(
                tuple(
                    (pe, PeInstall(request.table, queues), len(queues) * IpcqInitMsg.ENTRY_BYTES)
                    for pe, queues in request.queues
                )
            )
