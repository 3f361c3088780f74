"""The DMA engine of a PE: moves blocks between its TCM and any memory, a few requests at a time.

One request moves one block, whether its bytes are contiguous or rows at one pitch: the packet
carries a descriptor of the rows, by which the memory gathers or scatters them, and in flight the
bytes are packed. The packets of the four kinds of request:

    read    READ ---> far memory ---> DATA, DATA, ... ---> TCM
    write   TCM ---> WRITE, WRITE, ... ---> far memory ---> ACK
    copy    READ ---> one memory ---> DATA ... ---> WRITE ... ---> another memory ---> ACK
    push    TCM ---> IPCQ_DATA ... ---> ring of the peer           (no answer: credits bound it)

Packets are cut-through: each leaves when its first byte is there, and streams behind it.
"""

from collections import deque
from collections.abc import Callable
from zlib import crc32

from msgspec import Struct

from runtime.core.simtime import ps_from_ns
from runtime.core.trace import Operand, OpRecord
from sip_node.chip.completion import Completion
from sip_node.chip.fabric.packet import ELEMENTS, Kind, Packet
from sip_node.chip.pe.context import PeContext
from sip_node.chip.strided_block import StridedBlock, layout_of

Flow = tuple[int, int, int] | None


class _DmaRequest(Struct):
    """One request. `address` and `rows` are those of its block on the far side of the fabric.

    `data` are the packed bytes that it carries or has received so far. `in_tcm` is true if it
    receives them to TCM. `start_ps` is the time at which it got a channel.
    """

    name: str
    source: Operand
    target: Operand
    begin: "Callable[[_DmaRequest], None]"
    done: Completion[bytes]
    address: int
    nbytes: int
    rows: StridedBlock | None
    data: bytes = b""
    in_tcm: bool = False
    flow: Flow = None
    call: str = ""
    tag: int = 0
    start_ps: int = 0


class PeDma:
    """Keeps at most `channels` requests outstanding; the others queue in order.

    The time of a request starts when it gets a channel. Blocks have physical addresses. Every
    request completes with its bytes in row-major order, empty in a run without data, and raises
    `ValueError` for a far block that is not rows at one pitch.
    """

    def __init__(self, context: PeContext) -> None:
        self._context, self._engine = context, context.engine
        topology = context.topology
        self._overhead_ps = ps_from_ns(topology.pe.dma.overhead_ns)
        self._packet_bytes, self._control_bytes = topology.packet_bytes, topology.control_bytes
        self._idle_channels = topology.pe.dma.channels
        self._waiting: deque[_DmaRequest] = deque()
        self._outstanding: dict[int, _DmaRequest] = {}
        self._tags = 0
        self.busy_ps = 0
        self.nbytes = 0

    @property
    def in_flight(self) -> int:
        """The number of requests that have not completed."""
        return len(self._outstanding) + len(self._waiting)

    def read(self, source: Operand, target: Operand, name: str = "load") -> Completion[bytes]:
        """Copy a block of any memory to our TCM; completes when its last byte is there."""
        request = self._request(name, source, target, source, self._begin_read)
        request.in_tcm = True
        return self._enqueue(request)

    def write(
        self, source: Operand, target: Operand, data: bytes, name: str = "store"
    ) -> Completion[bytes]:
        """Copy a block of our TCM, with elements `data`, to any memory; completes with its ACK."""
        return self._enqueue(self._request(name, source, target, target, self._begin_write, data))

    def copy(self, source: Operand, target: Operand, name: str) -> Completion[bytes]:
        """Copy a block from one memory to another, past our TCM; completes with the ACK."""
        return self._enqueue(self._request(name, source, target, source, self._begin_read))

    def push(
        self, source: Operand, target: Operand, data: bytes, packet_bytes: int, call: str = ""
    ) -> Completion[bytes]:
        """Write an IPCQ slot in packets of `packet_bytes`; completes when the data has left TCM.

        The slot's metadata names the element type of `source` and the collective call that it
        belongs to.
        """
        sip, _ = self._context.locate(target.address)

        def begin(request: _DmaRequest) -> None:
            left_ps = self._stream(request, Kind.IPCQ_DATA, packet_bytes)
            self._engine.at(left_ps, self._finish, request)

        request = self._request("ipcq_send", source, target, target, begin, data)
        # Numbered here and not when the channel is free: the order of the calls is the order of
        # the arrows in a trace.
        own_sip = self._context.coordinates.sip
        request.flow = None if sip == own_sip else self._context.next_flow(sip)
        request.call = call
        return self._enqueue(request)

    def answer(self, packet: Packet, tail_ps: int) -> None:
        """Take a DATA or ACK packet that answers one of our requests."""
        request = self._outstanding[packet.tag]
        if packet.kind is Kind.ACK:
            self._engine.at(tail_ps, self._finish, request)
            return
        # Packets of one answer come in order: they take one route of FIFO links.
        request.data += packet.payload
        if not request.in_tcm:
            self._forward(request, packet, tail_ps)
            return
        _, landed_ps = self._context.tcm.reserve(self._engine.now_ps, tail_ps, packet.size)
        # The port of the TCM is FIFO, so when the last packet has landed the others have, too.
        if packet.last:
            self._engine.at(landed_ps, self._finish, request)

    def _request(
        self,
        name: str,
        source: Operand,
        target: Operand,
        far: Operand,
        begin: Callable[[_DmaRequest], None],
        data: bytes = b"",
    ) -> _DmaRequest:
        nbytes, rows = layout_of(far)
        return _DmaRequest(
            name=name,
            source=source,
            target=target,
            begin=begin,
            done=Completion[bytes](),
            address=far.address,
            nbytes=nbytes,
            rows=rows,
            data=data,
        )

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

    def _begin_read(self, request: _DmaRequest) -> None:
        packet = self._packet(request, Kind.READ, self._control_bytes, 0)
        # A read request is one packet for any number of bytes.
        packet.last = True
        self._send(packet, self._engine.now_ps)

    def _begin_write(self, request: _DmaRequest) -> None:
        self._stream(request, Kind.WRITE, self._packet_bytes)

    def _stream(self, request: _DmaRequest, kind: Kind, packet_bytes: int) -> int:
        """Read the data out of TCM packet by packet; returns when the last byte leaves."""
        left_ps = self._engine.now_ps
        for begin in range(0, request.nbytes, packet_bytes):
            size = min(packet_bytes, request.nbytes - begin)
            packet = self._packet(request, kind, size, begin)
            # The port of the TCM spaces the packets: each begins when the port serves it.
            head_ps, left_ps = self._context.tcm.reserve(
                self._engine.now_ps, self._engine.now_ps, size
            )
            self._engine.at(head_ps, self._send, packet, left_ps)
        return left_ps

    def _forward(self, request: _DmaRequest, answer: Packet, tail_ps: int) -> None:
        """Send data of one memory on to the other, packet by packet as it arrives."""
        if not answer.begin:
            # From the first DATA packet on, the far block is the target.
            request.address, request.rows = request.target.address, layout_of(request.target).rows
        packet = self._packet(request, Kind.WRITE, answer.size, answer.begin)
        self._send(packet, tail_ps)

    def _packet(self, request: _DmaRequest, kind: Kind, size: int, begin: int) -> Packet:
        """The packet with the packed bytes from `begin` on."""
        context, rows = self._context, request.rows
        sip, node = context.locate(request.address)
        last = begin + size == request.nbytes
        # Fewer than 16 keywords: with more, to build the struct takes three times as long.
        packet = Packet(
            kind=kind,
            source_sip=context.coordinates.sip,
            source_node=context.node,
            sip=sip,
            node=node,
            size=size,
            # Of rows every packet names the first one: the memory finds its bytes by `begin`.
            address=request.address + begin if rows is None else request.address,
            tag=request.tag,
            total=request.nbytes,
            last=last,
            sent_ps=request.start_ps,
            payload=request.data[begin : begin + size],
            flow=request.flow,
            rows=rows,
            begin=begin,
        )
        if kind is Kind.IPCQ_DATA:
            # The metadata of the slot. Its receiver reads it with the last packet.
            packet.element = ELEMENTS.index(request.source.dtype)
            packet.call = request.call if last else ""
        return packet

    def _send(self, packet: Packet, tail_ps: int) -> None:
        self._context.fabric.send(packet, self._context.node, tail_ps)

    def _finish(self, request: _DmaRequest) -> None:
        del self._outstanding[request.tag]
        now_ps, at, target = self._engine.now_ps, self._context.coordinates, request.target
        self.busy_ps += now_ps - request.start_ps
        self.nbytes += request.nbytes
        if request.in_tcm:
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
