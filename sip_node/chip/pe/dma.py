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
from zlib import crc32

from msgspec import Struct

from runtime.core.simtime import ps_from_ns
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.completion import Completion
from sip_node.chip.fabric.packet import ELEMENTS, FabricTransfer, Kind, Packet
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.read_window import ReadWindow
from sip_node.chip.strided_block import layout_of, nbytes_of


class _DmaRequest(Struct):
    """One request for `nbytes`, which leaves in packets of `packet_bytes`.

    `reading` is the READ of a block, `writing` the transfer that writes one; a copy has both.
    `data` are the packed bytes that it carries or has received. `start_ps` is the time at which it
    got a channel. `sent` counts the bytes that its packets have requested or carried, `answered`
    the bytes of DATA that have come.
    """

    name: str
    source: Operand
    target: Operand
    begin: "Callable[[_DmaRequest], None]"
    done: Completion[bytes]
    nbytes: int
    packet_bytes: int
    reading: FabricTransfer | None = None
    writing: FabricTransfer | None = None
    data: bytes = b""
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
        request.reading = self._transfer(Kind.READ, request, source)
        return self._enqueue(request)

    def write(
        self, source: Operand, target: Operand, data: bytes, name: str = "store"
    ) -> Completion[bytes]:
        """Copy a block of our TCM, with elements `data`, to any memory; completes with its ACK."""
        request = self._request(name, source, target, self._stream, nbytes_of(target), data)
        request.writing = self._transfer(Kind.WRITE, request, target)
        return self._enqueue(request)

    def copy(self, source: Operand, target: Operand, name: str) -> Completion[bytes]:
        """Copy a block from one memory to another, past our TCM; completes with the ACK."""
        request = self._request(name, source, target, self._window.begin, nbytes_of(source))
        request.reading = self._transfer(Kind.READ, request, source)
        request.writing = self._transfer(Kind.WRITE, request, target)
        return self._enqueue(request)

    def push(
        self, source: Operand, target: Operand, data: bytes, packet_bytes: int, call: str = ""
    ) -> Completion[bytes]:
        """Write an IPCQ slot in packets of `packet_bytes`; completes when the data has left TCM.

        The slot's metadata names the element type of `source` and the collective call that it
        belongs to.
        """
        request = self._request("ipcq_send", source, target, self._stream, nbytes_of(target), data)
        request.packet_bytes = packet_bytes
        slot = request.writing = self._transfer(Kind.IPCQ_DATA, request, target)
        slot.element, slot.call = ELEMENTS.index(source.dtype), call
        # Numbered here and not when the channel is free: the order of the calls is the order of
        # the arrows in a trace.
        if slot.sip != slot.source_sip:
            slot.flow = self._context.next_flow(slot.sip)
        return self._enqueue(request)

    def answer(self, packet: Packet, tail_ps: int) -> None:
        """Take a DATA or ACK packet that answers one of our requests."""
        request = self._outstanding[packet.transfer.tag]
        if packet.transfer.kind is Kind.ACK:
            self._engine.at(tail_ps, self._finish, request)
            return
        # Bytes are counted, since the answers to two READs may come in either order.
        request.answered += packet.size
        complete = request.answered == request.nbytes
        if complete:
            request.data = bytes(packet.transfer.payload)
        if request.writing is not None:
            self._forward(request, request.writing, packet, tail_ps)
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
        self._tags += 1
        return _DmaRequest(
            name=name,
            source=source,
            target=target,
            begin=begin,
            done=Completion[bytes](),
            nbytes=nbytes,
            packet_bytes=self._packet_bytes,
            data=data,
            tag=self._tags,
        )

    def _transfer(self, kind: Kind, request: _DmaRequest, block: Operand) -> FabricTransfer:
        """The transfer about a block on the far side of the fabric, and its data if we write."""
        sip, node = self._context.locate(block.address)
        return FabricTransfer(
            kind=kind,
            source_sip=self._context.coordinates.sip,
            source_node=self._context.node,
            sip=sip,
            node=node,
            address=block.address,
            tag=request.tag,
            total=request.nbytes,
            payload=request.data,
            rows=layout_of(block).rows,
        )

    def _enqueue(self, request: _DmaRequest) -> Completion[bytes]:
        self._waiting.append(request)
        self._fill_channels()
        return request.done

    def _fill_channels(self) -> None:
        while self._idle_channels and self._waiting:
            self._idle_channels -= 1
            request = self._waiting.popleft()
            # Time in the queue is the requester's wait, not the engine's work.
            request.start_ps = self._engine.now_ps
            for transfer in (request.reading, request.writing):
                if transfer is not None:
                    transfer.sent_ps = request.start_ps
            self._outstanding[request.tag] = request
            self._engine.at(self._engine.now_ps + self._overhead_ps, request.begin, request)

    def _send_read(self, request: _DmaRequest) -> bool:
        """Send the READ of the next packet; returns whether there are more."""
        assert request.reading is not None
        begin = request.sent
        request.sent = min(begin + request.packet_bytes, request.nbytes)
        last = request.sent == request.nbytes
        packet = Packet(request.reading, begin, self._control_bytes, last)
        self._send(packet, self._engine.now_ps)
        return not last

    def _stream(self, request: _DmaRequest) -> None:
        """Reserve the port of the TCM for the next packet of data."""
        now_ps = self._engine.now_ps
        nbytes = min(request.packet_bytes, request.nbytes - request.sent)
        head_ps, left_ps = self._context.tcm.reserve(now_ps, now_ps, nbytes)
        self._engine.at(head_ps, self._leave, request, nbytes, left_ps)

    def _leave(self, request: _DmaRequest, nbytes: int, left_ps: int) -> None:
        """Send the packet that the port serves now; its last byte leaves at `left_ps`."""
        assert request.writing is not None
        begin = request.sent
        request.sent = begin + nbytes
        last = request.sent == request.nbytes
        self._send(Packet(request.writing, begin, nbytes, last), left_ps)
        if not last:
            self._stream(request)
        elif request.writing.kind is Kind.IPCQ_DATA:
            self._engine.at(left_ps, self._finish, request)

    def _forward(
        self, request: _DmaRequest, writing: FabricTransfer, answer: Packet, tail_ps: int
    ) -> None:
        """Send data of one memory on to the other, packet by packet as it arrives."""
        # Which packet is the last one depends on the order of the answers, not on its bytes.
        last = request.answered == request.nbytes
        if last:
            writing.payload = request.data
        self._send(Packet(writing, answer.begin, answer.size, last), tail_ps)

    def _send(self, packet: Packet, tail_ps: int) -> None:
        self._context.fabric.send(packet, self._context.node, tail_ps)

    def _finish(self, request: _DmaRequest) -> None:
        del self._outstanding[request.tag]
        now_ps, at, target = self._engine.now_ps, self._context.coordinates, request.target
        self.busy_ps += now_ps - request.start_ps
        self.nbytes += request.nbytes
        if request.writing is None:
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
            flow=request.writing and request.writing.flow,
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
