"""A queue table of a PE: the queue pairs of one algorithm of one process group, by direction, with heads, tails and credits."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from runtime.core.errors import InvariantError
from runtime.core.requests import QueuePair
from runtime.model.addresses import AddressMap
from runtime.wire.messages import QueuePointers
from sip_node.chip.completion import Completion
from sip_node.chip.fabric.packet import Kind, Packet
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.slot_trace import decoded


class Slot(NamedTuple):
    """A full slot of a receive ring, as its metadata describes it: `nbytes` of elements of `dtype` at `address`.

    `call` is the collective call that its sender takes part in, empty for kernels of users.
    """

    address: int
    nbytes: int
    dtype: str
    call: str


class Queue:
    """One queue pair at work. Slots are counted from 0 for ever; slot n of a ring is n modulo its length."""

    def __init__(self, table: "QueueTable", pair: QueuePair) -> None:
        self.table, self.pair = table, pair
        self.sent = 0
        self.credits = pair.n_slots
        self.filled = 0
        self.arrived: deque[Slot] = deque()
        self.taken = 0
        self.sender: Completion[int] | None = None

    def take_slot(self) -> int:
        """The address of the next slot at the peer; a credit must be there."""
        assert self.pair.tx_base is not None
        self.credits -= 1
        address = self.pair.tx_base + self.sent % self.pair.n_slots * self.pair.slot_size
        self.sent += 1
        return address

    def fill(self, slot: Slot) -> None:
        """A slot of the own ring has become full."""
        self.filled += 1
        self.arrived.append(slot)
        if self.table.listener is not None:
            self.table.listener(self.pair.direction)

    def credit(self) -> None:
        """A slot of the peer's ring is free again; who sleeps for one gets it."""
        self.credits += 1
        if self.sender is not None:
            sender, self.sender = self.sender, None
            sender.complete(self.take_slot())

    @property
    def at_rest(self) -> bool:
        """Whether every credit is home and every arrival has been read."""
        return self.credits == self.pair.n_slots and self.filled == self.taken


class QueueTable:
    """The queues of table `name` of one PE, by direction.

    `listener`, if there is one, is told the direction of every slot that has become full. `call` is the collective call that
    used them last. `user` names the collective that they belong to until it has ended: no other kernel may use them.
    """

    def __init__(self, name: str, pairs: Sequence[QueuePair], context: PeContext) -> None:
        self.name, self._context = name, context
        self._queues = {
            pair.direction: Queue(self, pair)
            for pair in sorted(pairs, key=lambda pair: pair.direction)
        }
        self.listener: Callable[[str], None] | None = None
        self.call = self.user = ""

    @property
    def queues(self) -> tuple[Queue, ...]:
        """All queues, sorted by direction."""
        return tuple(self._queues.values())

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions, sorted."""
        return tuple(self._queues)

    @property
    def receiving(self) -> tuple[str, ...]:
        """The directions from which slots can come, sorted."""
        return tuple(way for way, queue in self._queues.items() if queue.pair.rx_base is not None)

    def pair(self, direction: str) -> QueuePair:
        """The queue pair of a direction."""
        return self._queues[direction].pair

    def acquire(self, direction: str) -> Completion[int]:
        """Complete with the address of a free slot of the peer's ring; sleeps until there is one."""
        queue = self._queues[direction]
        done = Completion[int]()
        if queue.credits:
            done.complete(queue.take_slot())
        else:
            queue.sender = done
        return done

    def full_slots(self, direction: str) -> int:
        """How many slots of a direction are full and were not taken."""
        return len(self._queues[direction].arrived)

    def take(self, direction: str) -> Slot | None:
        """The oldest full slot of a direction, or None; it is the caller's until `release`."""
        arrived = self._queues[direction].arrived
        return arrived.popleft() if arrived else None

    def release(self, direction: str) -> None:
        """The oldest slot taken has been read: send its credit home."""
        queue = self._queues[direction]
        pair, context = queue.pair, self._context
        assert pair.rx_base is not None
        address = pair.rx_base + queue.taken % pair.n_slots * pair.slot_size
        queue.taken += 1
        sip, node = context.locate_pe(pair.peer)
        credit = Packet(
            Kind.IPCQ_CREDIT,
            context.coordinates.sip,
            context.node,
            sip,
            node,
            pair.credit_bytes,
            address,
            sent_ps=context.engine.now_ps,
        )
        context.fabric.send(credit, context.node, context.engine.now_ps)

    def pointers(self, addresses: AddressMap) -> Iterator[QueuePointers]:
        """The registers of every direction, sorted, with the places of its rings."""
        for queue in self._queues.values():
            pair = queue.pair
            yield QueuePointers(
                *self._context.coordinates,
                self.name,
                pair.direction,
                pair.peer,
                pair.n_slots,
                pair.slot_size,
                queue.sent,
                queue.sent - (pair.n_slots - queue.credits),
                queue.credits,
                None if pair.tx_base is None else decoded(pair.tx_base, addresses),
                queue.filled,
                queue.taken,
                None if pair.rx_base is None else decoded(pair.rx_base, addresses),
            )

    def check_idle(self) -> None:
        """At the end of a run every arrival was taken and every credit is home."""
        where = f"ipcq of {self._context.coordinates}, {self.name}"
        for way, queue in self._queues.items():
            if queue.arrived:
                raise InvariantError(f"{where} {way}", self._never_received(queue))
        for way, queue in self._queues.items():
            if queue.credits != queue.pair.n_slots:
                law = f"{queue.credits} of {queue.pair.n_slots} credits are home: {queue.pair.peer} has not received the others"
                raise InvariantError(f"{where} {way}", f"{law}{self._last_call}")

    def _never_received(self, queue: Queue) -> str:
        count, call = len(queue.arrived), queue.arrived[0].call
        text = f"{count} slot{'s' if count > 1 else ''} from {queue.pair.peer} {'were' if count > 1 else 'was'} never received"
        first = f", the first one of {call}" if call else ""
        return f"{text}{first}{self._last_call}"

    @property
    def _last_call(self) -> str:
        return f"; the last call here was {self.call}" if self.call else ""
