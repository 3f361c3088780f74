"""The host side of a SIP: one stream of request batches, in the order in which the host program submitted them."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from zlib import crc32

from msgspec import Struct

from runtime.errors import PhysAddrError
from runtime.requests import Handle, IpcqInitMsg, KernelLaunchMsg, MemoryReadMsg, MemoryWriteMsg, MmuMapMsg, PeDmaMsg, Request
from runtime.trace import OpRecord
from sip_node.completion import Completion
from sip_node.components.commands import CubeCommand, Done, PeInstall, PeMap
from sip_node.components.packet import Kind, Packet
from sip_node.components.surroundings import Surroundings
from sip_node.rows import BYTES, bytes_at


@dataclass
class Batch(Handle):
    """Requests that run together; the next batch starts when the last of them has completed."""

    why: str = ""
    left: int = 0
    finished: "Completion[Batch]" = field(default_factory=Completion["Batch"])


class _Pending(Struct):
    """A request on its way: which of its batch it is, and the bytes that have come back."""

    batch: Batch
    index: int
    start_ps: int
    data: bytes = b""


class Host:
    """Sends requests down the modelled path: host, PCIe endpoint, IO_CPU and on."""

    def __init__(self, chip: Surroundings, node: int) -> None:
        self._chip, self._node, self._engine = chip, node, chip.engine
        self._queue: deque[Batch] = deque()
        self._pending: dict[int, _Pending] = {}
        self._tags = 0

    @property
    def current(self) -> str:
        """What the batch at work is for; empty when there is none."""
        return self._queue[0].why if self._queue else ""

    def submit(self, requests: Sequence[Request], why: str) -> Batch:
        """Queue a batch behind all earlier ones."""
        batch = Batch(tuple(requests), self._engine.now_ps, results=[b""] * len(requests), why=why, left=len(requests))
        self._queue.append(batch)
        if len(self._queue) == 1:
            self._engine.at(self._engine.now_ps, self._begin)
        return batch

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """An answer to one of our requests."""
        pending = self._pending[packet.tag]
        if packet.kind is Kind.DATA:
            pending.data += packet.payload
        if packet.last:
            self._engine.at(tail_ps, self._answered, packet)

    def _begin(self) -> None:
        batch = self._queue[0]
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
                self._send(Packet(
                    Kind.READ, self._chip.sip, self._node, sip, node, control_bytes, request.address, tag, request.nbytes
                ))  # fmt: skip
            case PeDmaMsg():
                command = CubeCommand(((request.pe, request, PeDmaMsg.ENTRY_BYTES),))
                self._control(graph.m_cpu(request.cube), command, command.nbytes, tag)
            case MmuMapMsg():
                orders = tuple((pe, PeMap(extents), len(extents) * MmuMapMsg.ENTRY_BYTES) for pe, extents in request.extents)
                self._control(graph.m_cpu(request.cube), CubeCommand(orders), CubeCommand(orders).nbytes, tag)
            case IpcqInitMsg():
                installs = tuple(
                    (pe, PeInstall(queues), len(queues) * IpcqInitMsg.ENTRY_BYTES) for pe, queues in request.queues
                )
                self._control(graph.m_cpu(request.cube), CubeCommand(installs), CubeCommand(installs).nbytes, tag)
            case KernelLaunchMsg():
                nbytes = KernelLaunchMsg.HEADER_BYTES + KernelLaunchMsg.ARGUMENT_BYTES * len(request.arguments)
                self._control(graph.io_cpu, request, nbytes, tag)

    def _write(self, request: MemoryWriteMsg, tag: int) -> None:
        sip, node = self._chip.locate(request.address)
        step = self._chip.topology.packet_bytes
        for done in range(0, request.nbytes, step):
            size = min(step, request.nbytes - done)
            self._send(Packet(
                Kind.WRITE, self._chip.sip, self._node, sip, node, size, request.address + done, tag, request.nbytes,
                done + size == request.nbytes, payload=request.data[done : done + size],
            ))  # fmt: skip

    def _control(self, node: int, body: object, nbytes: int, tag: int) -> None:
        size = max(nbytes, self._chip.topology.control_bytes)
        self._send(Packet(Kind.CONTROL, self._chip.sip, self._node, self._chip.sip, node, size, 0, tag, size, body=body))

    def _send(self, packet: Packet) -> None:
        packet.sent_ps = self._engine.now_ps
        self._chip.fabric.send(packet, self._node, self._engine.now_ps)

    def _answered(self, packet: Packet) -> None:
        pending = self._pending.pop(packet.tag)
        batch, now_ps = pending.batch, self._engine.now_ps
        request = batch.requests[pending.index]
        batch.results[pending.index] = pending.data
        if isinstance(packet.body, Done):
            batch.kernels_ps = max(batch.kernels_ps, packet.body.end_ps - packet.body.start_ps)
        if isinstance(request, MemoryWriteMsg):
            self._chip.log.add_written(request.data)
        self._chip.log.add(_record(request, pending.start_ps, now_ps, pending.data))
        batch.left -= 1
        if not batch.left:
            self._complete(batch)

    def _complete(self, batch: Batch) -> None:
        batch.done, batch.completed_ps = True, self._engine.now_ps
        self._queue.popleft()
        if self._queue:
            self._begin()
        batch.finished.complete(batch)


def _check(request: Request, chip: Surroundings) -> None:
    if not isinstance(request, MemoryWriteMsg | MemoryReadMsg | PeDmaMsg):
        return
    if request.nbytes < 1:
        raise ValueError(f"{request}: a request moves at least one byte")
    if chip.locate(request.address) != chip.locate(request.address + request.nbytes - 1):
        raise PhysAddrError(f"{request.address:#x}", f"{request.nbytes:,} bytes from there run past the end of the memory")
    tcm_bytes = chip.topology.tcm_bytes
    if isinstance(request, PeDmaMsg) and not 0 <= request.tcm_offset <= tcm_bytes - request.nbytes:
        raise ValueError(f"{request}: it leaves the TCM, which has {tcm_bytes:,} bytes")


def _record(request: Request, start_ps: int, end_ps: int, read: bytes) -> OpRecord:
    """A write leaves its bytes in memory, a read hands over those it read; what a PE copied is in the record of its DMA."""
    name = type(request).__name__
    match request:
        case MemoryWriteMsg():
            return OpRecord(
                "host", name, start_ps, end_ps, address=request.address, nbytes=request.nbytes, shape=(request.nbytes,),
                dtype=BYTES, checksum=crc32(request.data),
            )  # fmt: skip
        case MemoryReadMsg():
            source = bytes_at(request.address, request.nbytes)
            return OpRecord(
                "host", name, start_ps, end_ps, address=source.address, nbytes=request.nbytes, shape=source.shape,
                dtype=source.dtype, inputs=(source,), checksum=crc32(read),
            )  # fmt: skip
        case PeDmaMsg():
            return OpRecord("host", name, start_ps, end_ps, address=request.address, nbytes=request.nbytes)
        case _:
            return OpRecord("host", name, start_ps, end_ps)
