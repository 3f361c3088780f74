"""The DMA engine of a PE: moves data between its TCM and any memory, a few requests at a time."""

from collections import deque
from collections.abc import Callable

from msgspec import Struct

from runtime.simtime import ps_from_ns
from runtime.trace import OpRecord
from sip_node.completion import Completion
from sip_node.components.packet import Kind, Packet
from sip_node.components.wiring import PeWiring

Flow = tuple[int, int, int] | None


class _Request(Struct):
    """One request; `start_ps` is when a channel became its own, `data` what it carries or has received so far."""

    name: str
    address: int
    nbytes: int
    begin: "Callable[[_Request], None]"
    done: Completion[bytes]
    tag: int = 0
    start_ps: int = 0
    data: bytes = b""
    flow: Flow = None


class PeDma:
    """`channels` requests are outstanding at most, the rest queue; a request's time starts when its channel is its own."""

    def __init__(self, wiring: PeWiring) -> None:
        self._wiring, self._engine = wiring, wiring.engine
        topology = wiring.topology
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

    def read(self, address: int, nbytes: int, name: str = "load") -> Completion[bytes]:
        """Copy `nbytes` at a physical address to TCM; completes with the bytes."""
        return self._enqueue(_Request(name, address, nbytes, self._begin_read, Completion[bytes]()))

    def write(self, address: int, nbytes: int, data: bytes) -> Completion[bytes]:
        """Copy `data` from TCM to a physical address; completes when the memory has acknowledged it."""
        return self._enqueue(_Request("store", address, nbytes, self._begin_write, Completion[bytes](), data=data))

    def push(self, address: int, nbytes: int, data: bytes, packet_bytes: int) -> Completion[bytes]:
        """Write an IPCQ slot in packets of `packet_bytes`; completes when the data has left TCM."""
        sip, _ = self._wiring.locate(address)
        flow = None if sip == self._wiring.place.sip else self._wiring.next_flow(sip)

        def begin(request: _Request) -> None:
            left_ps = self._stream(request, Kind.IPCQ_DATA, packet_bytes)
            self._engine.at(left_ps, self._finish, request)

        return self._enqueue(_Request("ipcq_send", address, nbytes, begin, Completion[bytes](), data=data, flow=flow))

    def answer(self, packet: Packet, tail_ps: int) -> None:
        """A DATA or ACK packet has come back for one of our requests."""
        request = self._outstanding[packet.tag]
        if packet.kind is Kind.ACK:
            self._engine.at(tail_ps, self._finish, request)
            return
        request.data += packet.payload
        _, landed_ps = self._wiring.tcm.reserve(self._engine.now_ps, tail_ps, packet.size)
        if packet.last:
            self._engine.at(landed_ps, self._finish, request)

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
        self._send(self._packet(request, Kind.READ, self._control_bytes, 0), self._engine.now_ps)

    def _begin_write(self, request: _Request) -> None:
        self._stream(request, Kind.WRITE, self._packet_bytes)

    def _stream(self, request: _Request, kind: Kind, packet_bytes: int) -> int:
        """Read the data out of TCM packet by packet; returns when the last byte leaves."""
        left_ps = self._engine.now_ps
        for done in range(0, request.nbytes, packet_bytes):
            packet = self._packet(request, kind, min(packet_bytes, request.nbytes - done), done)
            head_ps, left_ps = self._wiring.tcm.reserve(self._engine.now_ps, self._engine.now_ps, packet.size)
            self._engine.at(head_ps, self._send, packet, left_ps)
        return left_ps

    def _packet(self, request: _Request, kind: Kind, size: int, done: int) -> Packet:
        sip, node = self._wiring.locate(request.address)
        return Packet(
            kind, self._wiring.place.sip, self._wiring.node, sip, node, size, request.address + done, request.tag,
            request.nbytes, done + size == request.nbytes, request.start_ps, request.data[done : done + size],
            flow=request.flow,
        )  # fmt: skip

    def _send(self, packet: Packet, tail_ps: int) -> None:
        # A READ is the whole request in one packet, whatever it asks for.
        if packet.kind is Kind.READ:
            packet.last = True
        self._wiring.fabric.send(packet, self._wiring.node, tail_ps)

    def _finish(self, request: _Request) -> None:
        del self._outstanding[request.tag]
        now_ps, place = self._engine.now_ps, self._wiring.place
        self.busy_ps += now_ps - request.start_ps
        self.nbytes += request.nbytes
        record = OpRecord(
            "pe_dma", request.name, request.start_ps, now_ps, place.cube, place.pe, request.address, request.nbytes,
            flow=request.flow,
        )  # fmt: skip
        self._wiring.record(record)
        self._idle_channels += 1
        self._fill_channels()
        request.done.complete(request.data)
