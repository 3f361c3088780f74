"""The packets of the transfers to and from one memory: when each is served, and when all are.

    WRITE, IPCQ_DATA   each packet is an access as it arrives; all of them are written at the end of
                       the last one to be served, and then the transfer is stored at once
    READ               each packet is complete before its first access; the pieces of its answer are
                       accesses one after the other, and leave in order
    ATOMIC             each packet is an access that reads as it arrives, and one that writes when
                       the bytes have been read; the transfer is combined at once when all of it is
                       written

The bytes of a READ are loaded at once, at the service of its last piece.

An access has the state of its packet, and goes on with it when its service begins. A packet of a
READ has one access, which is submitted again for each piece.
"""

from collections.abc import Callable
from typing import Any

import sip_node.chip.fabric.packet as packets
from sip_node.chip.fabric.packet import AtomicUpdate, FabricTransfer, Kind, Packet, PacketSender
from sip_node.chip.mapping.strided_block import StridedBlock
from sip_node.chip.memory.access import Access, AccessService, MessageKey, Service, service_of
from sip_node.chip.memory.packet_arrivals import PacketArrivals
from sip_node.chip.records.packet_train import PacketTrain
from sip_node.kernel.component import Component
from sip_node.kernel.outlet import Outlet
from sip_node.pdes.engine import Engine

_READ, _ATOMIC = Kind.READ, Kind.ATOMIC
# What an event goes on with; its subject is a packet, an access, a transfer or a piece.
_READ_ARRIVED, _STORED, _NEXT_PIECE, _LOAD, _SEND, _COMBINE = range(6)


class TransferStore:
    """A memory that stores and loads whole transfers; `keeps_data` if there are bytes to load."""

    def __init__(self, *, keeps_data: bool) -> None:
        self.keeps_data = keeps_data

    def written(self, packet: Packet) -> None:
        """All of a transfer is written; `packet` is its last one."""
        raise NotImplementedError(type(self).__name__)

    def answer(self, request: FabricTransfer) -> FabricTransfer:
        """The DATA that answers a READ, without its bytes."""
        raise NotImplementedError(type(self).__name__)

    def load(self, data: FabricTransfer) -> None:
        """Read the bytes of DATA."""
        raise NotImplementedError(type(self).__name__)


class Storing:
    """A transfer that is being written: the packets that wait, and the last one once it is here.

    All packets whose service has begun are written at `written_ps`.
    """

    def __init__(self, message: MessageKey, offset: int, rows: StridedBlock | None) -> None:
        self.message, self.offset, self.rows = message, offset, rows
        self.waiting = self.written_ps = 0
        self.last: Packet | None = None


class Answer:
    """The DATA of a READ: bytes whose service has begun, of which `sent` have left.

    Those whose service has begun are loaded by `loaded_ps`.
    """

    def __init__(self, data: FabricTransfer) -> None:
        self.data = data
        self.begun_bytes = self.sent = self.loaded_ps = 0


class LeavingPiece:
    """A packet of DATA that leaves."""

    answer: Answer
    begin: int
    size: int
    tail_ps: int


class WriteAccess(Access):
    """The access of a packet that is written."""

    memory: "MemoryPackets"
    packet: Packet
    storing: Storing

    def begun(self, first_ps: int, start_ps: int, end_ps: int) -> None:  # noqa: ARG002
        """The service begins."""
        self.memory.writes(self.packet, self.storing, end_ps)


class AtomicAccess(Access):
    """The access of a packet of an ATOMIC: it reads, and then writes."""

    memory: "MemoryPackets"
    packet: Packet
    storing: Storing

    def begun(self, first_ps: int, start_ps: int, end_ps: int) -> None:  # noqa: ARG002
        """The service of the read, or of the write, begins."""
        if self.writes:
            self.memory.writes(self.packet, self.storing, end_ps)
        else:
            self.memory.combines(self, end_ps)


class ReadAccess(Access):
    """The access of a packet of a READ, of one piece after the other.

    The bytes from `begin` to `end` wait, the others have left by `left_ps`.
    """

    memory: "MemoryPackets"
    request: Packet
    answer: Answer
    address_offset: int
    end: int
    left_ps: int

    def begun(self, first_ps: int, start_ps: int, end_ps: int) -> None:
        """The service of a piece begins."""
        self.memory.reads(self, first_ps, start_ps, end_ps)


class MemoryPackets(Component):
    """The packets at `node`, where `store` is a memory at physical addresses from `base` on.

    The data of a READ leave `latency_ps` after their service begins. `on_service(packet)` is called
    when the service of a packet begins.
    """

    def __init__(  # noqa: PLR0917 - an endpoint in plain values
        self,
        engine: Engine,
        fabric: PacketSender,
        node: int,
        base: int,
        service: Service,
        packet_bytes: int,
        latency_ps: int,
        store: TransferStore,
    ) -> None:
        self.join(engine)
        self._outlet, self.base = Outlet(fabric, node), base
        self.service: AccessService = service_of(service)
        self.store, self._packet_bytes, self._latency_ps = store, packet_bytes, latency_ps
        # Transfers in several packets, until the last one has come and all are served.
        self.storing: dict[FabricTransfer, Storing] = {}
        self.answers: dict[FabricTransfer, Answer] = {}
        self.on_service: Callable[[Packet], None] | None = None
        self.arrivals: PacketArrivals | None = None
        """Records the packets that arrive."""
        self._turns = 0

    @property
    def turns(self) -> int:
        """The events of the memory so far, but for loads of bytes, which a run without data does
        not have.
        """
        return self._turns + self.service.turns

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Serve a packet whose head has arrived and whose tail arrives at `tail_ps`."""
        if self.arrivals is not None:
            self.arrivals.append(packet, self.engine.now_ps, tail_ps, self.turns)
        if packet.transfer.kind is _READ:
            # Not cut-through: the descriptor must be complete before the memory can use it.
            self.later(tail_ps, _READ_ARRIVED, packet)
            return
        storing = self._storing_of(packet)
        storing.waiting += 1
        if packet.transfer.kind is _ATOMIC:
            self._read_before(packet, storing, tail_ps)
            return
        access = WriteAccess.__new__(WriteAccess)
        access.message, access.rows = storing.message, storing.rows
        access.offset = storing.offset + (packet.begin if storing.rows is None else 0)
        access.nbytes, access.begin = packet.size, packet.begin
        access.arrived_ps, access.tail_ps = self.engine.now_ps, tail_ps
        access.writes, access.train = True, packet.train
        access.memory, access.packet, access.storing = self, packet, storing
        self.service.submit(access)

    def proceed(self, step: int, subject: Any) -> None:
        """Go on with a packet, an access, a transfer or a piece."""
        if step == _LOAD:
            self.store.load(subject)
            return
        self._turns += 1
        if step == _READ_ARRIVED:
            self._read(subject)
        elif step == _NEXT_PIECE:
            self._submit_piece(subject)
        elif step == _SEND:
            self._send(subject)
        elif step == _STORED:
            self.store.written(subject)
        else:
            self._write_behind(subject)

    def _storing_of(self, packet: Packet) -> Storing:
        """The state of the transfer that a packet belongs to."""
        transfer = packet.transfer
        storing = self.storing.get(transfer)
        if storing is None:
            message = (transfer.source_sip, transfer.source_node, transfer.tag)
            storing = Storing(message, transfer.address - self.base, transfer.rows)
            if not packet.last:
                self.storing[transfer] = storing
        if packet.last:
            storing.last = packet
        return storing

    def writes(self, packet: Packet, storing: Storing, done_ps: int) -> None:
        """The service of a packet has begun; it is written at `done_ps`."""
        if self.on_service is not None:
            self.on_service(packet)
        storing.waiting -= 1
        # Packets of a transfer lie on different channels: the last one to arrive need not be the
        # last one written.
        storing.written_ps = max(storing.written_ps, done_ps)
        if storing.last is not None and not storing.waiting:
            self.storing.pop(packet.transfer, None)
            # All bytes become visible together: which of them a read in between would see depends
            # on the order of packets, and no program may rely on that.
            self.later(storing.written_ps, _STORED, storing.last)

    def _read_before(self, packet: Packet, storing: Storing, tail_ps: int) -> None:
        """Submit the read of a packet of an ATOMIC, whose tail arrives at `tail_ps`."""
        # The packets carry one operand or two; each byte of memory has as many bytes in them.
        update = packet.transfer.body
        assert isinstance(update, AtomicUpdate), "the body of an ATOMIC"
        operands = update.operands
        access = AtomicAccess.__new__(AtomicAccess)
        access.message, access.rows = storing.message, storing.rows
        access.begin, access.nbytes = packet.begin // operands, packet.size // operands
        access.offset = storing.offset + (access.begin if storing.rows is None else 0)
        access.arrived_ps, access.tail_ps = self.engine.now_ps, tail_ps
        access.writes, access.train = False, packet.train
        access.memory, access.packet, access.storing = self, packet, storing
        self.service.submit(access)

    def combines(self, access: AtomicAccess, done_ps: int) -> None:
        """The service of a read has begun, whose last byte is served at `done_ps`."""
        # Pipelined, as reads are: other accesses are served before the write. The controller
        # combines at the end of the write, with the bytes that the memory has then.
        self.later(done_ps + self._latency_ps, _COMBINE, access)

    def _write_behind(self, access: AtomicAccess) -> None:
        """Submit the write of an access whose bytes have been read."""
        access.writes, access.arrived_ps = True, self.engine.now_ps
        access.tail_ps = self.engine.now_ps
        self.service.submit(access)

    def _read(self, request: Packet) -> None:
        """A packet of a READ is complete."""
        transfer = request.transfer
        answer = self.answers.get(transfer)
        if answer is None:
            answer = self.answers[transfer] = Answer(self.store.answer(transfer))
            if request.train is not None:
                answer.data.train = PacketTrain(request.train.times)
        access = ReadAccess.__new__(ReadAccess)
        access.message = (transfer.source_sip, transfer.source_node, transfer.tag)
        access.rows, access.address_offset = transfer.rows, transfer.address - self.base
        access.memory, access.request, access.answer = self, request, answer
        access.arrived_ps = access.tail_ps = access.left_ps = self.engine.now_ps
        access.begin, access.train, access.writes = request.begin, request.train, False
        access.end = transfer.total if request.last else request.begin + self._packet_bytes
        self._submit_piece(access)

    def _submit_piece(self, access: ReadAccess) -> None:
        """Submit the next access of a READ."""
        access.offset = access.address_offset + (access.begin if access.rows is None else 0)
        access.nbytes = min(self._packet_bytes, access.end - access.begin)
        self.service.submit(access)

    def reads(self, access: ReadAccess, first_ps: int, start_ps: int, done_ps: int) -> None:
        """A piece leaves the latency after its service begins on all channels."""
        answer, request, size = access.answer, access.request, access.nbytes
        if self.on_service is not None and access.begin == request.begin:
            self.on_service(request)
        # The channels of a short piece may be free before those of the piece before it. It waits,
        # so that the pieces of a packet leave in order.
        access.left_ps = max(access.left_ps, start_ps)
        answer.begun_bytes += size
        answer.loaded_ps = max(answer.loaded_ps, access.left_ps)
        if answer.begun_bytes == answer.data.total:
            del self.answers[request.transfer]
            if self.store.keeps_data:
                # The bytes as of their service: a write that is complete by then is visible.
                self.later(answer.loaded_ps, _LOAD, answer.data)
        piece = LeavingPiece.__new__(LeavingPiece)
        piece.answer, piece.begin, piece.size = answer, access.begin, size
        # Reads are pipelined: the latency delays the data, and occupies no channel.
        piece.tail_ps = max(done_ps, access.left_ps) + self._latency_ps
        self.later(access.left_ps + self._latency_ps, _SEND, piece)
        access.begin += size
        if access.begin == access.end:
            return
        # One piece of a READ at a time: between two of them, others have their turn.
        if first_ps > self.engine.now_ps:
            self.later(first_ps, _NEXT_PIECE, access)
        else:
            self._submit_piece(access)

    def _send(self, piece: LeavingPiece) -> None:
        answer = piece.answer
        answer.sent += piece.size
        last = answer.sent == answer.data.total
        packet = packets.new_packet(answer.data, piece.begin, piece.size, last)
        self._outlet.send(packet, piece.tail_ps)
