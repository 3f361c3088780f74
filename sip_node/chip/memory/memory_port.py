"""The port of a memory on the fabric: answers READ and WRITE packets, announces full IPCQ slots.

HBM, SRAM and TCM share it. They differ in the service behind the port (`Service`), not in protocol:

    READ ------> wait for all of the request; DATA, DATA, ... as the memory delivers <------
    WRITE -----> store as it arrives; after the last packet of the message ACK <------------
    IPCQ_DATA -> store as it arrives; after the last packet IPCQ_ARRIVAL to the ring's PE
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial

from msgspec import Struct

from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.memory.memory import Memory
from sip_node.chip.memory.transaction_queue import Access, MessageKey, Service


class _Answer(Struct):
    """The DATA of a READ: bytes whose service has begun, of which `sent` have left.

    Those that have begun are loaded by `loaded_ps`.
    """

    data: FabricTransfer
    begun: int = 0
    sent: int = 0
    loaded_ps: int = 0


class _Reading(Struct):
    """A packet of a READ: the bytes from `begin` to `end` wait, the others left by `left_ps`."""

    request: Packet
    answer: _Answer
    arrived_ps: int
    begin: int
    end: int
    left_ps: int


class _Writing(Struct):
    """A message that is being written: the packets that wait, and the last one once it is here."""

    waiting: int = 0
    written_ps: int = 0
    last: Packet | None = None


class MemoryPort:
    """The port of the memory at fabric node `node`, at physical addresses from `base` on.

    `service` decides when a packet is served. The data of a READ leave `latency_ps` after their
    service begins. `on_service` is called with a packet when its service begins.
    """

    def __init__(
        self,
        chip: ChipContext,
        node: int,
        memory: Memory,
        base: int,
        service: Service,
        latency_ps: int = 0,
    ) -> None:
        self._engine, self._fabric = chip.engine, chip.fabric
        self._sip, self._node = chip.sip, node
        self.memory, self._base = memory, base
        self._service, self._latency_ps = service, latency_ps
        topology = chip.topology
        self._packet_bytes, self._control_bytes = topology.packet_bytes, topology.control_bytes
        self._rings: list[tuple[int, int, int]] = []
        self._early: list[Packet] = []
        self._writing: dict[MessageKey, _Writing] = {}
        self._answers: dict[MessageKey, _Answer] = {}
        self.on_service: Callable[[Packet], None] | None = None
        chip.memory_ports[node] = self

    def watch(self, ring_base: int, nbytes: int, pe_node: int) -> None:
        """Announce slots that fill in [ring_base, ring_base + nbytes) to the PE at `pe_node`."""
        self._rings.append((ring_base, ring_base + nbytes, pe_node))
        self._rings.sort()
        # Slots of this ring may be full already; those of rings without owner keep waiting.
        early, self._early = self._early, []
        for packet in early:
            self._announce(packet)

    def contents(self) -> Iterator[tuple[int, bytes]]:
        """(physical address, bytes) of every page that is not zero, without zeros at its ends."""
        for offset, page in self.memory.contents():
            content = page.lstrip(b"\0")
            yield self._base + offset + len(page) - len(content), content.rstrip(b"\0")

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Serve a WRITE, READ or IPCQ_DATA packet."""
        if packet.transfer.kind is Kind.READ:
            # Not cut-through: the descriptor must be complete before the memory can use it.
            self._engine.at(tail_ps, self._read, packet)
            return
        message = _key(packet)
        writing = self._writing.setdefault(message, _Writing())
        writing.waiting += 1
        if packet.last:
            writing.last = packet
        access = Access(
            message=message,
            offset=packet.address - self._base,
            nbytes=packet.size,
            arrived_ps=self._engine.now_ps,
            tail_ps=tail_ps,
            writes=True,
            begun=partial(self._write, packet, writing),
            rows=packet.transfer.rows,
            begin=packet.begin,
        )
        self._service.submit(access)

    def _write(
        self, packet: Packet, writing: _Writing, _first_ps: int, _start_ps: int, done_ps: int
    ) -> None:
        if self.on_service:
            self.on_service(packet)
        writing.waiting -= 1
        # Packets of a message lie on different channels: the last one to arrive need not be the
        # last one written, and an acknowledgement promises all of them.
        writing.written_ps = max(writing.written_ps, done_ps)
        if writing.last is not None and not writing.waiting:
            del self._writing[_key(packet)]
            self._engine.at(writing.written_ps, self._written, writing.last)

    def _written(self, packet: Packet) -> None:
        """All of a message is in the memory: its bytes become visible together."""
        transfer = packet.transfer
        if transfer.payload:
            offset = transfer.address - self._base
            if transfer.rows is None:
                self.memory.write(offset, transfer.payload)
            else:
                self.memory.write_rows(offset, transfer.rows, 0, transfer.payload)
        if transfer.kind is Kind.WRITE:
            self._answer(packet, Kind.ACK, transfer.source_sip, transfer.source_node)
        else:
            self._announce(packet)

    def _announce(self, packet: Packet) -> None:
        """Report a full slot to the PE that owns the ring."""
        owner = self._owner(packet.address)
        if owner is None:
            # The peer's queues were installed before those of the PE here, and it sends already.
            self._early.append(packet)
        else:
            self._answer(packet, Kind.IPCQ_ARRIVAL, self._sip, owner)

    def _owner(self, address: int) -> int | None:
        index = bisect_right(self._rings, address, key=lambda ring: ring[0]) - 1
        if index < 0 or address >= self._rings[index][1]:
            return None
        return self._rings[index][2]

    def _answer(self, packet: Packet, kind: Kind, sip: int, node: int) -> None:
        about = packet.transfer
        answer = FabricTransfer(
            kind=kind,
            source_sip=self._sip,
            source_node=self._node,
            sip=sip,
            node=node,
            address=packet.address,
            tag=about.tag,
            total=about.total,
            sent_ps=about.sent_ps,
            flow=about.flow,
            element=about.element,
            call=about.call,
        )
        self._fabric.send(Packet(answer, 0, self._control_bytes), self._node, self._engine.now_ps)

    def _read(self, request: Packet) -> None:
        now_ps, transfer = self._engine.now_ps, request.transfer
        answer = self._answers.get(_key(request))
        if answer is None:
            answer = self._answers[_key(request)] = _Answer(self._data_of(transfer))
        end = transfer.total
        if not request.last:
            end = request.begin + self._packet_bytes
        self._next_piece(_Reading(request, answer, now_ps, request.begin, end, now_ps))

    def _data_of(self, request: FabricTransfer) -> FabricTransfer:
        return FabricTransfer(
            kind=Kind.DATA,
            source_sip=self._sip,
            source_node=self._node,
            sip=request.source_sip,
            node=request.source_node,
            address=request.address,
            tag=request.tag,
            total=request.total,
            sent_ps=request.sent_ps,
            rows=request.rows,
        )

    def _next_piece(self, reading: _Reading) -> None:
        """Submit the next packet of a READ."""
        request, begin = reading.request, reading.begin
        transfer = request.transfer
        offset = transfer.address - self._base
        access = Access(
            message=_key(request),
            offset=offset + begin if transfer.rows is None else offset,
            nbytes=min(self._packet_bytes, reading.end - begin),
            arrived_ps=reading.arrived_ps,
            tail_ps=reading.arrived_ps,
            writes=False,
            begun=partial(self._deliver, reading),
            rows=transfer.rows,
            begin=begin,
        )
        self._service.submit(access)

    def _deliver(self, reading: _Reading, first_ps: int, start_ps: int, done_ps: int) -> None:
        """Send a packet back; it leaves the latency after its service begins on all channels."""
        request, begin = reading.request, reading.begin
        if self.on_service and begin == request.begin:
            self.on_service(request)
        size = min(self._packet_bytes, reading.end - begin)
        # The channels of a short packet may be free before those of the packet before it. It waits,
        # so that the packets of a READ leave in order.
        reading.left_ps = left_ps = max(reading.left_ps, start_ps)
        answer = reading.answer
        answer.begun += size
        answer.loaded_ps = max(answer.loaded_ps, left_ps)
        if answer.begun == answer.data.total:
            del self._answers[_key(request)]
            if self.memory.keeps_data:
                # The bytes as of their service: a write that is complete by then is visible.
                self._engine.at(answer.loaded_ps, self._load, answer.data)
        tail_ps = max(done_ps, left_ps) + self._latency_ps
        self._engine.at(left_ps + self._latency_ps, self._send, answer, size, begin, tail_ps)
        reading.begin = begin + size
        if reading.begin == reading.end:
            return
        # One packet of a READ at a time: between two of them, others have their turn.
        if first_ps > self._engine.now_ps:
            self._engine.at(first_ps, self._next_piece, reading)
        else:
            self._next_piece(reading)

    def _load(self, data: FabricTransfer) -> None:
        """Read the bytes of an answer once, at the service of its last piece."""
        offset = data.address - self._base
        if data.rows is None:
            data.payload = self.memory.read(offset, data.total)
        else:
            data.payload = self.memory.read_rows(offset, data.rows, 0, data.total)

    def _send(self, answer: _Answer, size: int, begin: int, tail_ps: int) -> None:
        answer.sent += size
        last = answer.sent == answer.data.total
        self._fabric.send(Packet(answer.data, begin, size, last), self._node, tail_ps)


def _key(packet: Packet) -> MessageKey:
    transfer = packet.transfer
    return transfer.source_sip, transfer.source_node, transfer.tag
