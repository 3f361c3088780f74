"""The packets of the transfers to and from one memory: when each is served, and when all are.

    WRITE, IPCQ_DATA   each packet is an access as it arrives; all of them are written at the end of
                       the last one to be served, and then the transfer is stored at once
    READ               each packet is complete before its first access; the pieces of its answer are
                       accesses one after the other, and leave in order

The bytes of a READ are loaded at once, at the service of its last piece.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet, PacketSender
from sip_node.chip.fabric.packet_train import PacketTrain
from sip_node.chip.memory.transaction_queue import Access, Service
from sip_node.pdes.engine import Engine


class _Storing(Struct, gc=False):
    """A transfer that is being written: the packets that wait, and the last one once it is here.

    All packets whose service has begun are written at `written_ps`.
    """

    waiting: int = 0
    written_ps: int = 0
    last: Packet | None = None


class _Answer(Struct, gc=False):
    """The DATA of a READ: bytes whose service has begun, of which `sent` have left.

    Those whose service has begun are loaded by `loaded_ps`.
    """

    data: FabricTransfer
    begun: int = 0
    sent: int = 0
    loaded_ps: int = 0


class _Reading(Struct, gc=False):
    """A packet of a READ: the bytes from `begin` to `end` wait, the others left by `left_ps`."""

    request: Packet
    answer: _Answer
    arrived_ps: int
    begin: int
    end: int
    left_ps: int


class TransferStore(Protocol):
    """A memory that stores and loads whole transfers."""

    @property
    def keeps_data(self) -> bool:
        """Whether there are bytes to load."""
        ...

    def written(self, packet: Packet) -> None:
        """All of a transfer is written; `packet` is its last one."""
        ...

    def answer(self, request: FabricTransfer) -> FabricTransfer:
        """The DATA that answers a READ, without its bytes."""
        ...

    def load(self, data: FabricTransfer) -> None:
        """Read the bytes of DATA."""
        ...


class ReferenceMemoryPackets:
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
        self._engine, self._fabric, self._node = engine, fabric, node
        self._base, self._service, self._store = base, service, store
        self._packet_bytes, self._latency_ps = packet_bytes, latency_ps
        # Transfers in several packets, until the last one has come and all are served.
        self._storing: dict[FabricTransfer, _Storing] = {}
        self._answers: dict[FabricTransfer, _Answer] = {}
        self.on_service: Callable[[Packet], None] | None = None

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Serve a packet whose head has arrived and whose tail arrives at `tail_ps`."""
        transfer = packet.transfer
        if transfer.kind is Kind.READ:
            # Not cut-through: the descriptor must be complete before the memory can use it.
            self._engine.at(tail_ps, self._read, packet)
            return
        storing = self._storing.get(transfer)
        if storing is None:
            storing = _Storing()
            if not packet.last:
                self._storing[transfer] = storing
        storing.waiting += 1
        if packet.last:
            storing.last = packet
        access = Access(
            message=(transfer.source_sip, transfer.source_node, transfer.tag),
            offset=packet.address - self._base,
            nbytes=packet.size,
            arrived_ps=self._engine.now_ps,
            tail_ps=tail_ps,
            writes=True,
            begun=partial(self._writes, packet, storing),
            rows=transfer.rows,
            begin=packet.begin,
            train=packet.train,
        )
        self._service.submit(access)

    def _writes(
        self, packet: Packet, storing: _Storing, _first_ps: int, _start_ps: int, done_ps: int
    ) -> None:
        if self.on_service:
            self.on_service(packet)
        storing.waiting -= 1
        # Packets of a transfer lie on different channels: the last one to arrive need not be the
        # last one written.
        storing.written_ps = max(storing.written_ps, done_ps)
        if storing.last is not None and not storing.waiting:
            self._storing.pop(packet.transfer, None)
            self._engine.at(storing.written_ps, self._store.written, storing.last)

    def _read(self, request: Packet) -> None:
        now_ps, transfer = self._engine.now_ps, request.transfer
        answer = self._answers.get(transfer)
        if answer is None:
            answer = self._answers[transfer] = _Answer(self._store.answer(transfer))
            if request.train is not None:
                answer.data.train = PacketTrain(request.train.times)
        end = transfer.total if request.last else request.begin + self._packet_bytes
        self._next_piece(_Reading(request, answer, now_ps, request.begin, end, now_ps))

    def _next_piece(self, reading: _Reading) -> None:
        """Submit the next access of a READ."""
        transfer, begin = reading.request.transfer, reading.begin
        offset = transfer.address - self._base
        access = Access(
            message=(transfer.source_sip, transfer.source_node, transfer.tag),
            offset=offset + begin if transfer.rows is None else offset,
            nbytes=min(self._packet_bytes, reading.end - begin),
            arrived_ps=reading.arrived_ps,
            tail_ps=reading.arrived_ps,
            writes=False,
            begun=partial(self._reads, reading),
            rows=transfer.rows,
            begin=begin,
            train=reading.request.train,
        )
        self._service.submit(access)

    def _reads(self, reading: _Reading, first_ps: int, start_ps: int, done_ps: int) -> None:
        """A piece leaves the latency after its service begins on all channels."""
        request, answer, begin = reading.request, reading.answer, reading.begin
        if self.on_service and begin == request.begin:
            self.on_service(request)
        size = min(self._packet_bytes, reading.end - begin)
        # The channels of a short piece may be free before those of the piece before it. It waits,
        # so that the pieces of a packet leave in order.
        reading.left_ps = left_ps = max(reading.left_ps, start_ps)
        answer.begun += size
        answer.loaded_ps = max(answer.loaded_ps, left_ps)
        if answer.begun == answer.data.total:
            del self._answers[request.transfer]
            if self._store.keeps_data:
                # The bytes as of their service: a write that is complete by then is visible.
                self._engine.at(answer.loaded_ps, self._store.load, answer.data)
        tail_ps = max(done_ps, left_ps) + self._latency_ps
        self._engine.at(left_ps + self._latency_ps, self._send, answer, size, begin, tail_ps)
        reading.begin = begin + size
        if reading.begin == reading.end:
            return
        # One piece of a READ at a time: between two of them, others have their turn.
        if first_ps > self._engine.now_ps:
            self._engine.at(first_ps, self._next_piece, reading)
        else:
            self._next_piece(reading)

    def _send(self, answer: _Answer, size: int, begin: int, tail_ps: int) -> None:
        answer.sent += size
        last = answer.sent == answer.data.total
        self._fabric.send(Packet(answer.data, begin, size, last), self._node, tail_ps)


if TYPE_CHECKING or not IS_COMPILED:
    MemoryPackets = ReferenceMemoryPackets
else:
    from sip_node.compiled.memory_packets import MemoryPackets  # noqa: F401 - the name of this module
