"""A queue table of a PE: the queue pairs of one algorithm of one process group, by direction.

A sender writes into the receive ring of its peer and counts what it sent; credits bound that, so
that a slot is never written before it was read:

    this PE                                 peer
    sent ----- data + metadata ----->       ring:  | read | full | full | free |
    credits <---- one per slot read --

Credits start at the number of slots. Slots are counted from 0 without end; slot n lies in the ring
at index n modulo its length. Slots are read in this order, not in the order in which they become
full: the packets of two slots take turns at memories, so a short slot can be full before a long one
that was sent before it.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from runtime.core.errors import InvariantError
from runtime.core.requests import QueuePair, Transfer
from runtime.core.trace import Operand
from runtime.model.addresses import AddressMap, PhysAddr
from runtime.wire.reports import QueuePointers, RingAddress, SlotTransfer
from sip_node.chip.completion import AnyCompletion
from sip_node.chip.fabric import packet as packets
from sip_node.chip.fabric.packet import Kind
from sip_node.chip.mapping.strided_block import nbytes_of
from sip_node.chip.pe.context import PeContext
from sip_node.kernel.outlet import Outlet

_CREDIT, _READY = Kind.IPCQ_CREDIT, Kind.IPCQ_READY


class Slot:
    """A full slot, from its metadata: `nbytes` of elements of `dtype` at physical `address`.

    `call` is the collective call that its sender is in, empty for kernels of users.
    """

    def __init__(self, address: int, nbytes: int, dtype: str, call: str) -> None:
        self.address, self.nbytes, self.dtype, self.call = address, nbytes, dtype, call


def new_slot(address: int, nbytes: int, dtype: str, call: str) -> Slot:
    """A slot; in C, without the call of a constructor."""
    slot = Slot.__new__(Slot)
    slot.address, slot.nbytes, slot.dtype, slot.call = address, nbytes, dtype, call
    return slot


class QueueState:
    """The state of one queue pair. `table` names its queue table.

    `filled` counts the slots of the own ring that became full, `taken` those that were read and
    whose credit has left. `arrived` are the full slots that no receive has taken. A queue without a
    ring at one end has the base -1 there. `peer_sip` and `peer_node` are the PE of the peer on the
    fabric, -1 before the first message to it.
    """

    def __init__(self, table: str, pair: QueuePair, announce: Callable[[str], None]) -> None:
        self.table, self._announce = table, announce
        self.pair = pair
        self.sent = self.filled = self.taken = 0
        self.credits = self.n_slots
        self.arrived: deque[Slot] = deque()
        # Full slots by address, behind a slot that is not yet full.
        self._early: dict[int, Slot] = {}
        self._sender: AnyCompletion | None = None
        self.peer_sip = self.peer_node = -1

    @property
    def pair(self) -> QueuePair:
        """The queue pair."""
        return self.queue_pair

    @pair.setter
    def pair(self, pair: QueuePair) -> None:
        # What is read for every slot is beside it, in C as numbers.
        self.queue_pair, self.direction = pair, pair.direction
        self.n_slots, self.slot_size = pair.n_slots, pair.slot_size
        self.rx_base = -1 if pair.rx_base is None else pair.rx_base
        self.tx_base = -1 if pair.tx_base is None else pair.tx_base

    @property
    def at_rest(self) -> bool:
        """Whether every credit is back and every slot that arrived was read."""
        return self.credits == self.n_slots and self.filled == self.taken

    def reserve(self) -> int:
        """The address of a free slot of the peer's ring, reserved now; -2 without a credit."""
        index = self.sent % self.n_slots
        if self.credits <= 0:
            return -2
        assert self.tx_base >= 0, "a queue that sends has a ring at the peer"
        # Before the data leave (credit-based flow control): a packet that is on its way always has
        # its slot, so no full ring ever stops packets inside the fabric.
        self.credits -= 1
        self.sent += 1
        return self.tx_base + index * self.slot_size

    def acquire(self) -> AnyCompletion:
        """Complete with the address of a free slot, reserved once there is a credit."""
        # One kernel at a time uses a queue, and it is sequential: at most one sender sleeps.
        done = AnyCompletion()
        address = self.reserve()
        if address >= 0:
            done.complete(address)
        else:
            self._sender = done
        return done

    def fill(self, slot: Slot) -> None:
        """A slot of the own ring has become full: announce it, once all slots before it are."""
        address = slot.address
        # Packets of two slots take turns at a memory, so the later slot may be full first.
        if address != self._in_own_ring(self.filled):
            self._early[address] = slot
        else:
            self._append(slot)
            # In the order of the ring: without an earlier slot still to come there is no lookup.
            while self._early:
                behind = self._early.pop(self._in_own_ring(self.filled), None)
                if behind is None:
                    break
                self._append(behind)

    def credit(self) -> None:
        """A slot of the peer's ring is free again: a sender that sleeps for it continues."""
        sender = self._sender
        self.credits += 1
        if sender is not None:
            self._sender = None
            sender.complete(self.reserve())

    def release(self) -> int:
        """The oldest slot that was taken has been read; returns its address."""
        address = self._in_own_ring(self.taken)
        self.taken += 1
        return address

    @property
    def is_starved(self) -> bool:
        """Whether a sender sleeps for a credit."""
        return self._sender is not None

    def repeat(self, sent: int, filled: int, taken: int, credits_back: int) -> None:
        """Count slots that a launch which is not simulated has sent, received and read."""
        self.sent += sent
        self.filled += filled
        self.taken += taken
        self.credits += credits_back

    def _append(self, slot: Slot) -> None:
        self.filled += 1
        self.arrived.append(slot)
        # After the slot is in the list, since the listener takes it in this call.
        self._announce(self.direction)

    def _in_own_ring(self, number: int) -> int:
        """The address of slot number `number`."""
        assert self.rx_base >= 0, "a queue that receives has a ring"
        return self.rx_base + number % self.n_slots * self.slot_size


class QueueTable:
    """The queues of table `name` of one PE, by direction.

    `listener`, if there is one, receives the direction of every slot that has become full, except
    for the slots of messages whose receive is posted: those go to the listener of the receive.
    `call` is the collective call that used the queues last. `user` names the collective that
    reserves them until it has ended: no other kernel may use them. `kept` counts the messages that
    receives in place have matched: whether one stays in its slots depends on where they are.
    """

    def __init__(self, name: str, pairs: Sequence[QueuePair], context: PeContext) -> None:
        self.name, self._context, self._engine = name, context, context.engine
        self._outlet = Outlet(context.fabric, context.node)
        self._sip, self._node = context.coordinates.sip, context.node
        # Sorted, so that the order of the directions does not depend on that of their installation.
        self._queues = {
            pair.direction: QueueState(name, pair, self._announce)
            for pair in sorted(pairs, key=lambda pair: pair.direction)
        }
        self.listener: Callable[[str], None] | None = None
        self.call = self.user = ""
        self.kept = 0
        self._posted: dict[str, Callable[[str], None]] = {}
        self._receiving: dict[str, Callable[[str], None]] = {}

    @property
    def queues(self) -> tuple[QueueState, ...]:
        """All queues, sorted by direction."""
        return tuple(self._queues.values())

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions, sorted."""
        return tuple(self._queues)

    @property
    def receiving(self) -> tuple[str, ...]:
        """The directions from which slots can arrive, sorted."""
        return tuple(
            direction for direction, queue in self._queues.items() if queue.pair.rx_base is not None
        )

    def queue(self, direction: str) -> QueueState | None:
        """The queue of a direction, None without one."""
        return self._queues.get(direction)

    def pair(self, direction: str) -> QueuePair:
        """The queue pair of a direction."""
        return self._queues[direction].pair

    def full_slots(self, direction: str) -> int:
        """The number of slots of a direction that are full and were not taken."""
        return len(self._queues[direction].arrived)

    def return_credit(self, queue: QueueState) -> None:
        """The oldest slot taken from a queue has been read: return its credit to the sender."""
        self._notify(queue, _CREDIT, queue.release(), "")

    def post(self, call: str, listener: Callable[[str], None]) -> None:
        """Post the receive of the message `call`: `listener` receives the direction of its slots,
        but for those that arrive before an earlier message of the same direction has ended.
        """
        self._posted[call] = listener

    def ready(self, call: str, transfer: Transfer) -> None:
        """Notify the sender of the message `call` that its receive is posted here."""
        queue = self._queues[transfer.direction]
        self._notify(queue, _READY, queue.rx_base, f"{call}: {transfer.part}")

    def begin_message(self, direction: str, call: str) -> bool:
        """Whether the next slot belongs to the message `call` and no other one is being received.

        The message then has the direction to itself until `end_message`.
        """
        arrived = self._queues[direction].arrived
        if direction in self._receiving or not arrived or arrived[0].call != call:
            return False
        self._receiving[direction] = self._posted[call]
        return True

    def end_message(self, direction: str, call: str) -> None:
        """The last slot of the message `call` has been read."""
        del self._receiving[direction], self._posted[call]
        # Slots of the next message may have arrived behind those of this one.
        if self._queues[direction].arrived:
            self._announce(direction)

    def pointers(self, addresses: AddressMap) -> Iterator[QueuePointers]:
        """The registers of every direction, sorted, with the addresses of its rings."""
        own = self._context.coordinates
        for queue in self._queues.values():
            pair = queue.pair
            yield QueuePointers(
                sip=own.sip,
                cube=own.cube,
                pe=own.pe,
                table=self.name,
                direction=pair.direction,
                peer=pair.peer,
                n_slots=pair.n_slots,
                slot_size=pair.slot_size,
                head=queue.sent,
                peer_tail=queue.sent - (pair.n_slots - queue.credits),
                credits=queue.credits,
                tx=None if pair.tx_base is None else decoded(pair.tx_base, addresses),
                peer_head=queue.filled,
                tail=queue.taken,
                rx=None if pair.rx_base is None else decoded(pair.rx_base, addresses),
            )

    def check_idle(self) -> None:
        """Check after a run that every slot was taken, and that every credit is back."""
        owner = f"ipcq of {self._context.coordinates}, {self.name}"
        # All arrivals first: a slot that was never received explains the credit that is missing.
        for direction, queue in self._queues.items():
            if queue.arrived:
                raise InvariantError(f"{owner} {direction}", self._never_received(queue))
        if self._posted:
            raise InvariantError(owner, f"a posted receive has no message: {min(self._posted)}")
        for direction, queue in self._queues.items():
            pair = queue.pair
            if queue.credits != pair.n_slots:
                law = (
                    f"{queue.credits} of {pair.n_slots} credits are home: "
                    f"{pair.peer} has not received the others{self._last_call}"
                )
                raise InvariantError(f"{owner} {direction}", law)

    def _notify(self, queue: QueueState, kind: Kind, address: int, call: str) -> None:
        """Send a control packet to the peer of a queue."""
        now_ps = self._engine.now_ps
        if queue.peer_node < 0:
            queue.peer_sip, queue.peer_node = self._context.locate_pe(queue.queue_pair.peer)
        # A packet like any other: it takes time, and competes for links with data.
        notice = packets.new_transfer(kind, self._sip, self._node, queue.peer_sip, queue.peer_node)
        notice.address, notice.call, notice.sent_ps = address, call, now_ps
        packet = packets.new_packet(notice, 0, queue.queue_pair.credit_bytes, last=True)
        self._outlet.send(packet, now_ps)

    def _announce(self, direction: str) -> None:
        listener = self._receiving.get(direction)
        if listener is None:
            listener = self.listener
            if self._posted:
                # The first slot names its message, which selects the receive: messages of several
                # receives share one ring.
                head = self._head(direction)
                listener = self._posted.get(head.call, listener)
        if listener is not None:
            listener(direction)

    def _head(self, direction: str) -> Slot:
        return self._queues[direction].arrived[0]

    def _never_received(self, queue: QueueState) -> str:
        count, call = len(queue.arrived), queue.arrived[0].call
        slots = "1 slot" if count == 1 else f"{count} slots"
        were = "was" if count == 1 else "were"
        first = f", the first one of {call}" if call else ""
        return f"{slots} from {queue.pair.peer} {were} never received{first}{self._last_call}"

    @property
    def _last_call(self) -> str:
        return f"; the last call here was {self.call}" if self.call else ""


def decoded(address: int, addresses: AddressMap) -> RingAddress:
    """A physical address with its fields: the memory, its coordinates, the offset."""
    fields = PhysAddr.decode(address, addresses)
    return RingAddress(
        address=address,
        resource=fields.resource,
        sip=fields.sip,
        cube=fields.cube,
        pe=fields.pe,
        offset=fields.offset,
    )


class SlotTrace:
    """Reports the slots of one kernel on one PE to `sink`, at the end of each transfer."""

    def __init__(
        self,
        addresses: AddressMap,
        context: PeContext,
        kernel: str,
        sink: Callable[[SlotTransfer], None],
    ) -> None:
        self._addresses, self._context = addresses, context
        self._kernel, self._sink = kernel, sink

    def sent(self, pair: QueuePair, block: Operand) -> None:
        """The last byte of a block has left TCM for the slot at its address."""
        slot = Slot(block.address, nbytes_of(block), block.dtype, "")
        self._report("send", pair, pair.tx_base, slot)

    def received(self, pair: QueuePair, slot: Slot) -> None:
        """A slot has been copied out of the ring."""
        self._report("recv", pair, pair.rx_base, slot)

    def _report(self, operation: str, pair: QueuePair, base: int | None, slot: Slot) -> None:
        assert base is not None, "a slot is in a ring"
        own = self._context.coordinates
        self._sink(
            SlotTransfer(
                time_ps=self._context.engine.now_ps,
                sip=own.sip,
                cube=own.cube,
                pe=own.pe,
                kernel=self._kernel,
                operation=operation,
                direction=pair.direction,
                peer=pair.peer,
                nbytes=slot.nbytes,
                dtype=slot.dtype,
                slot=(slot.address - base) // pair.slot_size,
                address=decoded(slot.address, self._addresses),
            )
        )
