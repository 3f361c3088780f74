"""The DMA engine of a PE: moves blocks between its TCM and any memory, a few requests at a time.

A block is one request, whether its bytes are one piece or rows at one pitch: the descriptor says so to the memory, which
gathers or scatters, and on the way the bytes are packed.
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


class _Request(Struct):
    """One request. `address` and `rows` are those of its block on the far side of the fabric, `data` the packed bytes that it
    carries or has received so far, and `start_ps` is when a channel became its own.
    """

    name: str
    source: Operand
    target: Operand
    begin: "Callable[[_Request], None]"
    done: Completion[bytes]
    address: int
    nbytes: int
    rows: StridedBlock | None
    data: bytes = b""
    lands: bool = False
    flow: Flow = None
    call: str = ""
    tag: int = 0
    start_ps: int = 0


class PeDma:
    """`channels` requests are outstanding at most, the rest queue; a request's time starts when its channel is its own.

    Blocks have physical addresses. Every request completes with its bytes in row-major order, empty in a run without data, and
    refuses with a `ValueError` a block far away that is not rows at one pitch.
    """

    def __init__(self, context: PeContext) -> None:
        self._context, self._engine = context, context.engine
        topology = context.topology
        self._overhead_ps = ps_from_ns(topology.pe.dma.overhead_ns)
        self._packet_bytes, self._control_bytes = topology.packet_bytes, topology.control_bytes
        self._idle_channels = topology.pe.dma.channels
        self._waiting: deque[_Request] = deque()
        self._outstanding: dict[int, _Request] = {}
        self._tags = 0
        self.busy_ps = 0
        self.nbytes = 0

    @property
    def in_flight(self) -> int:
        """Requests that have not completed."""
        return len(self._outstanding) + len(self._waiting)

    def read(self, source: Operand, target: Operand, name: str = "load") -> Completion[bytes]:
        """Copy a block of any memory to one in our TCM, where it is when the request completes."""
        request = self._request(name, source, target, source, self._begin_read)
        request.lands = True
        return self._enqueue(request)

    def write(
        self, source: Operand, target: Operand, data: bytes, name: str = "store"
    ) -> Completion[bytes]:
        """Copy a block of our TCM, whose elements are `data`, to any memory; completes when that has acknowledged it."""
        return self._enqueue(self._request(name, source, target, target, self._begin_write, data))

    def copy(self, source: Operand, target: Operand, name: str) -> Completion[bytes]:
        """Copy a block of one memory to another one without a stop in TCM; completes when that has acknowledged it."""
        return self._enqueue(self._request(name, source, target, source, self._begin_read))

    def push(
        self, source: Operand, target: Operand, data: bytes, packet_bytes: int, call: str = ""
    ) -> Completion[bytes]:
        """Write an IPCQ slot in packets of `packet_bytes`; completes when the data has left TCM.

        The slot's metadata names the element type of `source` and the collective call that it belongs to.
        """
        sip, _ = self._context.locate(target.address)

        def begin(request: _Request) -> None:
            left_ps = self._stream(request, Kind.IPCQ_DATA, packet_bytes)
            self._engine.at(left_ps, self._finish, request)

        request = self._request("ipcq_send", source, target, target, begin, data)
        request.flow = (
            None if sip == self._context.coordinates.sip else self._context.next_flow(sip)
        )
        request.call = call
        return self._enqueue(request)

    def answer(self, packet: Packet, tail_ps: int) -> None:
        """A DATA or ACK packet has come back for one of our requests."""
        request = self._outstanding[packet.tag]
        if packet.kind is Kind.ACK:
            self._engine.at(tail_ps, self._finish, request)
            return
        request.data += packet.payload
        if not request.lands:
            self._pass_on(request, packet, tail_ps)
            return
        _, landed_ps = self._context.tcm.reserve(self._engine.now_ps, tail_ps, packet.size)
        if packet.last:
            self._engine.at(landed_ps, self._finish, request)

    def _request(
        self,
        name: str,
        source: Operand,
        target: Operand,
        far: Operand,
        begin: Callable[[_Request], None],
        data: bytes = b"",
    ) -> _Request:
        return _Request(
            name, source, target, begin, Completion[bytes](), far.address, *layout_of(far), data
        )

    def _enqueue(self, request: _Request) -> Completion[bytes]:
        self._tags += 1
        request.tag = self._tags
        self._waiting.append(request)
        self._fill_channels()
        return request.done

    def _fill_channels(self) -> None:
        while self._idle_channels and self._waiting:
            self._idle_channels -= 1
            request = self._waiting.popleft()
            request.start_ps = self._engine.now_ps
            self._outstanding[request.tag] = request
            self._engine.at(self._engine.now_ps + self._overhead_ps, request.begin, request)

    def _begin_read(self, request: _Request) -> None:
        packet = self._packet(request, Kind.READ, self._control_bytes, 0)
        # The whole request is in one packet, whatever it asks for.
        packet.last = True
        self._send(packet, self._engine.now_ps)

    def _begin_write(self, request: _Request) -> None:
        self._stream(request, Kind.WRITE, self._packet_bytes)

    def _stream(self, request: _Request, kind: Kind, packet_bytes: int) -> int:
        """Read the data out of TCM packet by packet; returns when the last byte leaves."""
        left_ps = self._engine.now_ps
        for done in range(0, request.nbytes, packet_bytes):
            packet = self._packet(request, kind, min(packet_bytes, request.nbytes - done), done)
            head_ps, left_ps = self._context.tcm.reserve(
                self._engine.now_ps, self._engine.now_ps, packet.size
            )
            self._engine.at(head_ps, self._send, packet, left_ps)
        return left_ps

    def _pass_on(self, request: _Request, answer: Packet, tail_ps: int) -> None:
        """What has come from one memory goes on to the other as it comes."""
        if not answer.begin:
            request.address, request.rows = request.target.address, layout_of(request.target).rows
        packet = self._packet(request, Kind.WRITE, answer.size, answer.begin)
        self._send(packet, tail_ps)

    def _packet(self, request: _Request, kind: Kind, size: int, done: int) -> Packet:
        sip, node = self._context.locate(request.address)
        rows, last = request.rows, done + size == request.nbytes
        return Packet(
            kind,
            self._context.coordinates.sip,
            self._context.node,
            sip,
            node,
            size,
            request.address + done if rows is None else request.address,
            request.tag,
            request.nbytes,
            last,
            request.start_ps,
            request.data[done : done + size],
            flow=request.flow,
            rows=rows,
            begin=done,
            element=ELEMENTS.index(request.source.dtype) if kind is Kind.IPCQ_DATA else 0,
            call=request.call if last else "",
        )

    def _send(self, packet: Packet, tail_ps: int) -> None:
        self._context.fabric.send(packet, self._context.node, tail_ps)

    def _finish(self, request: _Request) -> None:
        del self._outstanding[request.tag]
        now_ps, at, target = self._engine.now_ps, self._context.coordinates, request.target
        self.busy_ps += now_ps - request.start_ps
        self.nbytes += request.nbytes
        if request.lands:
            self._context.tcm.write(target, request.data)
        record = OpRecord(
            "pe_dma",
            request.name,
            request.start_ps,
            now_ps,
            at.cube,
            at.pe,
            target.address,
            request.nbytes,
            target.shape,
            target.dtype,
            request.flow,
            inputs=(request.source,),
            strides=target.strides,
            checksum=crc32(request.data),
        )
        self._context.record(record)
        self._idle_channels += 1
        self._fill_channels()
        request.done.complete(request.data)
