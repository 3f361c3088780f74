"""The host side of a SIP: batches of requests, each sent when those that it waits for are complete."""

from collections.abc import Sequence
from zlib import crc32

from msgspec import Struct

from runtime.core.errors import PhysAddrError
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
from runtime.core.trace import OpRecord
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.chip.host.batch import Batch, Batches
from sip_node.chip.host.commands import CommandDone, CubeCommand, PeInstall, PeMap
from sip_node.chip.strided_block import BYTES, bytes_at


class _Pending(Struct):
    """A request on its way: which of its batch it is, and the bytes that have come back."""

    batch: Batch
    index: int
    start_ps: int
    data: bytes = b""


class Host:
    """Sends requests down the modelled path: host, PCIe endpoint, IO_CPU and on."""

    def __init__(self, chip: ChipContext, node: int) -> None:
        self._chip, self._node, self._engine = chip, node, chip.engine
        self._batches = Batches()
        self._pending: dict[int, _Pending] = {}
        self._tags = 0

    @property
    def current(self) -> str:
        """What the earliest batch that is not complete is for; empty when there is none."""
        batch = self._batches.earliest
        return "" if batch is None else batch.why

    def submit(
        self,
        requests: Sequence[Request],
        why: str,
        *,
        tensors: frozenset[str] = frozenset(),
        order: StreamOrder = StreamOrder.COMPUTE,
    ) -> Batch:
        """Queue a batch behind those that it has to wait for."""
        now_ps, count = self._engine.now_ps, len(requests)
        batch = Batch(
            tuple(requests),
            now_ps,
            results=[b""] * count,
            why=why,
            tensors=tensors,
            order=order,
            left=count,
        )
        if self._batches.add(batch):
            self._engine.at(now_ps, self._begin, batch)
        return batch

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """An answer to one of our requests."""
        pending = self._pending[packet.tag]
        if packet.kind is Kind.DATA:
            pending.data += packet.payload
        if packet.last:
            self._engine.at(tail_ps, self._answered, packet)

    def _begin(self, batch: Batch) -> None:
        batch.submitted_ps = self._engine.now_ps
        if not batch.left:
            self._complete(batch)
        for index, request in enumerate(batch.requests):
            _check(request, self._chip)
            self._tags += 1
            self._pending[self._tags] = _Pending(batch, index, self._engine.now_ps)
            self._issue(request, self._tags)

    def _issue(self, request: Request, tag: int) -> None:
        graph, control_bytes = self._chip.graph, self._chip.topology.control_bytes
        match request:
            case MemoryWriteMsg():
                self._write(request, tag)
            case MemoryReadMsg():
                sip, node = self._chip.locate(request.address)
                self._send(
                    Packet(
                        Kind.READ,
                        self._chip.sip,
                        self._node,
                        sip,
                        node,
                        control_bytes,
                        request.address,
                        tag,
                        request.nbytes,
                    )
                )
            case PeDmaMsg():
                command = CubeCommand(((request.pe, request, PeDmaMsg.ENTRY_BYTES),))
                self._control(graph.m_cpu(request.cube), command, command.nbytes, tag)
            case MmuMapMsg():
                orders = tuple(
                    (pe, PeMap(extents), len(extents) * MmuMapMsg.ENTRY_BYTES)
                    for pe, extents in request.extents
                )
                self._control(
                    graph.m_cpu(request.cube), CubeCommand(orders), CubeCommand(orders).nbytes, tag
                )
            case IpcqInitMsg():
                installs = tuple(
                    (pe, PeInstall(request.table, queues), len(queues) * IpcqInitMsg.ENTRY_BYTES)
                    for pe, queues in request.queues
                )
                self._control(
                    graph.m_cpu(request.cube),
                    CubeCommand(installs),
                    CubeCommand(installs).nbytes,
                    tag,
                )
            case KernelLaunchMsg():
                nbytes = KernelLaunchMsg.HEADER_BYTES + KernelLaunchMsg.ARGUMENT_BYTES * len(
                    request.arguments
                )
                self._control(graph.io_cpu, request, nbytes, tag)

    def _write(self, request: MemoryWriteMsg, tag: int) -> None:
        sip, node = self._chip.locate(request.address)
        step = self._chip.topology.packet_bytes
        for done in range(0, request.nbytes, step):
            size = min(step, request.nbytes - done)
            self._send(
                Packet(
                    Kind.WRITE,
                    self._chip.sip,
                    self._node,
                    sip,
                    node,
                    size,
                    request.address + done,
                    tag,
                    request.nbytes,
                    done + size == request.nbytes,
                    payload=request.data[done : done + size],
                )
            )

    def _control(self, node: int, body: object, nbytes: int, tag: int) -> None:
        size = max(nbytes, self._chip.topology.control_bytes)
        self._send(
            Packet(
                Kind.CONTROL,
                self._chip.sip,
                self._node,
                self._chip.sip,
                node,
                size,
                0,
                tag,
                size,
                body=body,
            )
        )

    def _send(self, packet: Packet) -> None:
        packet.sent_ps = self._engine.now_ps
        self._chip.fabric.send(packet, self._node, self._engine.now_ps)

    def _answered(self, packet: Packet) -> None:
        pending = self._pending.pop(packet.tag)
        batch, now_ps = pending.batch, self._engine.now_ps
        request = batch.requests[pending.index]
        batch.results[pending.index] = pending.data
        if isinstance(packet.body, CommandDone):
            batch.kernels_ps = max(batch.kernels_ps, packet.body.end_ps - packet.body.start_ps)
        if isinstance(request, MemoryWriteMsg):
            self._chip.log.add_written(request.data)
        self._chip.log.add(_record(request, pending.start_ps, now_ps, pending.data))
        batch.left -= 1
        if not batch.left:
            self._complete(batch)

    def _complete(self, batch: Batch) -> None:
        batch.done, batch.completed_ps, batch.holds = True, self._engine.now_ps, ()
        for later in self._batches.complete(batch):
            self._begin(later)
        batch.finished.complete(batch)


def _check(request: Request, chip: ChipContext) -> None:
    if not isinstance(request, MemoryWriteMsg | MemoryReadMsg | PeDmaMsg):
        return
    if request.nbytes < 1:
        raise ValueError(f"{request}: a request moves at least one byte")
    if chip.locate(request.address) != chip.locate(request.address + request.nbytes - 1):
        raise PhysAddrError(
            f"{request.address:#x}",
            f"{request.nbytes:,} bytes from there run past the end of the memory",
        )
    tcm_bytes = chip.topology.tcm_bytes
    if isinstance(request, PeDmaMsg) and not 0 <= request.tcm_offset <= tcm_bytes - request.nbytes:
        raise ValueError(f"{request}: it leaves the TCM, which has {tcm_bytes:,} bytes")


def _record(request: Request, start_ps: int, end_ps: int, read: bytes) -> OpRecord:
    """A write leaves its bytes in memory, a read hands over those it read; what a PE copied is in the record of its DMA."""
    name = type(request).__name__
    match request:
        case MemoryWriteMsg():
            return OpRecord(
                "host",
                name,
                start_ps,
                end_ps,
                address=request.address,
                nbytes=request.nbytes,
                shape=(request.nbytes,),
                dtype=BYTES,
                checksum=crc32(request.data),
            )
        case MemoryReadMsg():
            source = bytes_at(request.address, request.nbytes)
            return OpRecord(
                "host",
                name,
                start_ps,
                end_ps,
                address=source.address,
                nbytes=request.nbytes,
                shape=source.shape,
                dtype=source.dtype,
                inputs=(source,),
                checksum=crc32(read),
            )
        case PeDmaMsg():
            return OpRecord(
                "host", name, start_ps, end_ps, address=request.address, nbytes=request.nbytes
            )
        case _:
            return OpRecord("host", name, start_ps, end_ps)
