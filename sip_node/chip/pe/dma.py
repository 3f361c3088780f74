"""The DMA engine of a PE: moves blocks between its TCM and any memory, a few requests at a time.

One request moves one block, whether its bytes are contiguous or rows at one pitch: the packet
carries a descriptor of the rows, by which the memory gathers or scatters them, and in flight the
bytes are packed. The packets of the four kinds of request:

    read    READ, READ, ... ---> far memory ---> DATA, DATA, ... ---> TCM
    write   TCM ---> WRITE, WRITE, ... ---> far memory ---> ACK
    copy    READ ... ---> one memory ---> DATA ... ---> WRITE ... ---> another memory ---> ACK
    push    TCM ---> IPCQ_DATA ... ---> ring of the peer           (no answer: credits bound it)

Packets are cut-through: each leaves when its first byte is there, and streams behind it.

Two limits bound the work in flight: at most `channels` requests are outstanding, the others queue;
and at most `outstanding` packets are on their way to the engine. A request is divided into READs of
one packet each, which the requests send in turn (`ReadWindow`).

Data leaves TCM packet by packet as well: a packet reserves the port when the packet before it
begins, so another channel, or a slot that arrives, gets the port between two packets.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple
from zlib import crc32

from msgspec import Struct

from runtime.core.simtime import ps_from_ns
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.completion import Completion
from sip_node.chip.fabric.packet import ELEMENTS, Kind, Packet
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.read_window import ReadWindow
from sip_node.chip.strided_block import StridedBlock, layout_of, nbytes_of

Flow = tuple[int, int, int] | None


class _FarBlock(NamedTuple):
    """A block on the far side of the fabric: its memory, its first byte, and its rows."""

    sip: int
    node: int
    address: int
    rows: StridedBlock | None


class _DmaRequest(Struct):
    """One request for `nbytes`, which leaves in packets of `packet_bytes`.

    It reads `source_block`, or writes `target_block`; a copy has both. `data` are the packed bytes
    that it carries or has received, `gathered` those of an answer in several packets. `start_ps` is
    the time at which it got a channel. `sent` counts the bytes that its packets have requested or
    carried, `answered` the bytes of DATA that have come.
    """

    name: str
    source: Operand
    target: Operand
    begin: "Callable[[_DmaRequest], None]"
    done: Completion[bytes]
    nbytes: int
    packet_bytes: int
    source_block: _FarBlock | None = None
    target_block: _FarBlock | None = None
    data: bytes = b""
    gathered: bytearray | None = None
    kind: Kind = Kind.WRITE
    flow: Flow = None
    call: str = ""
    tag: int = 0
    start_ps: int = 0
    sent: int = 0
    answered: int = 0


class PeDma:
    """Keeps at most `channels` requests outstanding; the others queue in order.

    The time of a request starts when it gets a channel. Blocks have physical addresses. Every
    request completes with its bytes in row-major order, empty in a run without data, and raises
    `ValueError` for a far block that no descriptor can hold.
    """

    def __init__(self, context: PeContext) -> None:
        self._context, self._engine = context, context.engine
        topology = context.topology
        self._overhead_ps = ps_from_ns(topology.pe.dma.overhead_ns)
        self._packet_bytes, self._control_bytes = topology.packet_bytes, topology.control_bytes
        self._idle_channels = topology.pe.dma.channels
        self._waiting: deque[_DmaRequest] = deque()
        self._outstanding: dict[int, _DmaRequest] = {}
        places = topology.pe.dma.outstanding
        self._window = ReadWindow[_DmaRequest](self._engine, places, self._send_read)
        self._tags = 0
        self.busy_ps = 0
        self.nbytes = 0

    @property
    def in_flight(self) -> int:
        """The number of requests that have not completed."""
        return len(self._outstanding) + len(self._waiting)

    def read(self, source: Operand, target: Operand, name: str = "load") -> Completion[bytes]:
        """Copy a block of any memory to our TCM; completes when its last byte is there."""
        request = self._request(name, source, target, self._window.begin, nbytes_of(source))
        request.source_block = self._far(source)
        return self._enqueue(request)

    def write(
        self, source: Operand, target: Operand, data: bytes, name: str = "store"
    ) -> Completion[bytes]:
        """Copy a block of our TCM, with elements `data`, to any memory; completes with its ACK."""
        request = self._request(name, source, target, self._stream, nbytes_of(target), data)
        request.target_block = self._far(target)
        return self._enqueue(request)

    def copy(self, source: Operand, target: Operand, name: str) -> Completion[bytes]:
        """Copy a block from one memory to another, past our TCM; completes with the ACK."""
        request = self._request(name, source, target, self._window.begin, nbytes_of(source))
        request.source_block, request.target_block = self._far(source), self._far(target)
        return self._enqueue(request)

    def push(
        self, source: Operand, target: Operand, data: bytes, packet_bytes: int, call: str = ""
    ) -> Completion[bytes]:
        """Write an IPCQ slot in packets of `packet_bytes`; completes when the data has left TCM.

        The slot's metadata names the element type of `source` and the collective call that it
        belongs to.
        """
        nbytes = nbytes_of(target)
        request = self._request("ipcq_send", source, target, self._stream, nbytes, data)
        block = request.target_block = self._far(target)
        request.kind, request.packet_bytes, request.call = Kind.IPCQ_DATA, packet_bytes, call
        # Numbered here and not when the channel is free: the order of the calls is the order of
        # the arrows in a trace.
        own_sip = self._context.coordinates.sip
        request.flow = None if block.sip == own_sip else self._context.next_flow(block.sip)
        return self._enqueue(request)

    def answer(self, packet: Packet, tail_ps: int) -> None:
        """Take a DATA or ACK packet that answers one of our requests."""
        request = self._outstanding[packet.tag]
        if packet.kind is Kind.ACK:
            self._engine.at(tail_ps, self._finish, request)
            return
        if packet.payload:
            self._gather(request, packet)
        # Bytes are counted, since the answers to two READs may come in either order.
        request.answered += packet.size
        complete = request.answered == request.nbytes
        if request.target_block is not None:
            self._forward(request, packet, complete, tail_ps)
            landed_ps = tail_ps
        else:
            _, landed_ps = self._context.tcm.reserve(self._engine.now_ps, tail_ps, packet.size)
            # The port of the TCM is FIFO: when the last packet to come has landed, all have.
            if complete:
                self._engine.at(landed_ps, self._finish, request)
        self._window.landed(landed_ps)

    def _request(
        self,
        name: str,
        source: Operand,
        target: Operand,
        begin: Callable[[_DmaRequest], None],
        nbytes: int,
        data: bytes = b"",
    ) -> _DmaRequest:
        return _DmaRequest(
            name=name,
            source=source,
            target=target,
            begin=begin,
            done=Completion[bytes](),
            nbytes=nbytes,
            packet_bytes=self._packet_bytes,
            data=data,
        )

    def _far(self, block: Operand) -> _FarBlock:
        sip, node = self._context.locate(block.address)
        return _FarBlock(sip, node, block.address, layout_of(block).rows)

    def _enqueue(self, request: _DmaRequest) -> Completion[bytes]:
        self._tags += 1
        request.tag = self._tags
        self._waiting.append(request)
        self._fill_channels()
        return request.done

    def _fill_channels(self) -> None:
        while self._idle_channels and self._waiting:
            self._idle_channels -= 1
            request = self._waiting.popleft()
            # Time in the queue is the requester's wait, not the engine's work.
            request.start_ps = self._engine.now_ps
            self._outstanding[request.tag] = request
            self._engine.at(self._engine.now_ps + self._overhead_ps, request.begin, request)

    def _send_read(self, request: _DmaRequest) -> bool:
        """Send the READ of the next packet; returns whether there are more."""
        block, begin = request.source_block, request.sent
        assert block is not None
        packet = self._packet(request, Kind.READ, block, self._control_bytes, begin)
        packet.total = min(request.packet_bytes, request.nbytes - begin)
        request.sent = begin + packet.total
        packet.last = request.sent == request.nbytes
        self._send(packet, self._engine.now_ps)
        return not packet.last

    def _stream(self, request: _DmaRequest) -> None:
        """Reserve the port of the TCM for the next packet of data."""
        now_ps = self._engine.now_ps
        nbytes = min(request.packet_bytes, request.nbytes - request.sent)
        head_ps, left_ps = self._context.tcm.reserve(now_ps, now_ps, nbytes)
        self._engine.at(head_ps, self._leave, request, nbytes, left_ps)

    def _leave(self, request: _DmaRequest, nbytes: int, left_ps: int) -> None:
        """Send the packet that the port serves now; its last byte leaves at `left_ps`."""
        block = request.target_block
        assert block is not None
        begin = request.sent
        packet = self._packet(request, request.kind, block, nbytes, begin)
        request.sent = begin + nbytes
        packet.last = request.sent == request.nbytes
        packet.payload = request.data[begin : request.sent]
        if request.kind is Kind.IPCQ_DATA:
            # The metadata of the slot. Its receiver reads it with the last packet.
            packet.element = ELEMENTS.index(request.source.dtype)
            packet.call = request.call if packet.last else ""
            packet.flow = request.flow
        self._send(packet, left_ps)
        if not packet.last:
            self._stream(request)
        elif request.kind is Kind.IPCQ_DATA:
            self._engine.at(left_ps, self._finish, request)

    def _forward(
        self,
        request: _DmaRequest,
        answer: Packet,
        last: bool,  # noqa: FBT001
        tail_ps: int,
    ) -> None:
        """Send data of one memory on to the other, packet by packet as it arrives."""
        block = request.target_block
        assert block is not None
        packet = self._packet(request, Kind.WRITE, block, answer.size, answer.begin)
        packet.payload = answer.payload
        # Which packet is the last one depends on the order of the answers, not on its bytes.
        packet.last = last
        self._send(packet, tail_ps)

    def _packet(
        self, request: _DmaRequest, kind: Kind, block: _FarBlock, size: int, begin: int
    ) -> Packet:
        """A packet about the packed bytes of `block` from `begin` on."""
        rows = block.rows
        # Fewer than 16 keywords: with more, to build the struct takes three times as long.
        return Packet(
            kind=kind,
            source_sip=self._context.coordinates.sip,
            source_node=self._context.node,
            sip=block.sip,
            node=block.node,
            size=size,
            # Of rows every packet names the first one: the memory finds its bytes by `begin`.
            address=block.address + begin if rows is None else block.address,
            tag=request.tag,
            total=request.nbytes,
            sent_ps=request.start_ps,
            rows=rows,
            begin=begin,
        )

    def _gather(self, request: _DmaRequest, packet: Packet) -> None:
        """Keep the bytes of an answer, at their offset in the block."""
        if packet.size == request.nbytes:
            request.data = bytes(packet.payload)
            return
        if request.gathered is None:
            request.gathered = bytearray(request.nbytes)
        request.gathered[packet.begin : packet.begin + packet.size] = packet.payload

    def _send(self, packet: Packet, tail_ps: int) -> None:
        self._context.fabric.send(packet, self._context.node, tail_ps)

    def _finish(self, request: _DmaRequest) -> None:
        del self._outstanding[request.tag]
        now_ps, at, target = self._engine.now_ps, self._context.coordinates, request.target
        self.busy_ps += now_ps - request.start_ps
        self.nbytes += request.nbytes
        if request.gathered is not None:
            request.data, request.gathered = bytes(request.gathered), None
        if request.target_block is None:
            self._context.tcm.write(target, request.data)
        record = OpRecord(
            engine="pe_dma",
            name=request.name,
            start_ps=request.start_ps,
            end_ps=now_ps,
            cube=at.cube,
            pe=at.pe,
            address=target.address,
            nbytes=request.nbytes,
            shape=target.shape,
            dtype=target.dtype,
            flow=request.flow,
            inputs=(request.source,),
            strides=target.strides,
            checksum=crc32(request.data),
        )
        self._context.record(record)
        # Reassign the channel before the requester continues: requests that wait are older than
        # its next one.
        self._idle_channels += 1
        self._fill_channels()
        request.done.complete(request.data)
