"""The IPCQ of a PE: queue pairs by direction. It keeps heads, tails and credits; the data moves through the DMA.

A sender takes a slot of the peer's receive ring, writes it, and the slot's metadata arrives with the data. With no slot left
it sleeps. The receiver gives a slot back with a credit that travels the fabric. An arrival belongs to the direction whose own
ring holds its address, a credit to the direction whose peer ring does; who sent it does not matter, so two directions may
join the same two PEs.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from runtime.errors import InvariantError, IpcqInstallError
from runtime.hardware.addresses import AddressMap
from runtime.requests import QueuePair
from runtime.simtime import ps_from_ns
from runtime.trace import OpRecord
from runtime.wire.messages import QueuePointers
from sip_node.completion import Completion
from sip_node.components.packet import ELEMENTS, Kind, Packet
from sip_node.components.slot_trace import decoded
from sip_node.components.wiring import PeWiring


class Slot(NamedTuple):
    """A full slot of a receive ring, as its metadata describes it: `nbytes` of elements of `dtype` at `address`."""

    address: int
    nbytes: int
    dtype: str


class _Direction:
    """One queue pair at work. Slots are counted from 0 for ever; slot n of a ring is n modulo its length."""

    def __init__(self, pair: QueuePair) -> None:
        self.pair = pair
        self.sent = 0
        self.credits = pair.n_slots
        self.filled = 0
        self.arrived: deque[Slot] = deque()
        self.taken = 0
        self.sender: Completion[int] | None = None

    def take_slot(self) -> int:
        """The address of the next slot at the peer; a credit must be there."""
        self.credits -= 1
        address = self.pair.tx_base + self.sent % self.pair.n_slots * self.pair.slot_size
        self.sent += 1
        return address


class PeIpcq:
    """The queue pairs of one PE. `listener`, if there is one, is told the direction of every slot that has become full."""

    def __init__(self, wiring: PeWiring) -> None:
        self._wiring = wiring
        self._overhead_ps = ps_from_ns(wiring.topology.pe.ipcq.overhead_ns)
        self._directions: dict[str, _Direction] = {}
        self.listener: Callable[[str], None] | None = None

    def install(self, pairs: Sequence[QueuePair]) -> None:
        """Install all queue pairs of this PE, once; receive rings must not overlap."""
        if self._directions:
            raise IpcqInstallError(self._wiring.place, "queues are installed already; a PE takes one installation")
        rings = sorted((pair.rx_base, pair.direction, pair.ring_bytes) for pair in pairs)
        for (base, direction, nbytes), (after, other, _) in pairwise(rings):
            if base + nbytes > after:
                raise IpcqInstallError(self._wiring.place, f"receive rings of {direction} and {other} overlap at {after:#x}")
        self._directions = {pair.direction: _Direction(pair) for pair in pairs}

    @property
    def directions(self) -> tuple[str, ...]:
        """The installed directions, sorted."""
        return tuple(sorted(self._directions))

    def pair(self, direction: str) -> QueuePair:
        """The queue pair of an installed direction."""
        return self._directions[direction].pair

    @property
    def reaches_other_sips(self) -> bool:
        """Whether any peer is on another SIP."""
        return any(each.pair.peer.sip != self._wiring.place.sip for each in self._directions.values())

    def acquire(self, direction: str) -> Completion[int]:
        """Complete with the address of a free slot of the peer's ring; sleeps until there is one."""
        queue = self._directions[direction]
        done = Completion[int]()
        if queue.credits:
            done.complete(queue.take_slot())
        else:
            queue.sender = done
        return done

    def full_slots(self, direction: str) -> int:
        """How many slots of a direction are full and were not taken."""
        return len(self._directions[direction].arrived)

    def take(self, direction: str) -> Slot | None:
        """The oldest full slot of a direction, or None; it is the caller's until `release`."""
        arrived = self._directions[direction].arrived
        return arrived.popleft() if arrived else None

    def release(self, direction: str) -> None:
        """The oldest slot taken has been read: send its credit home."""
        queue = self._directions[direction]
        pair = queue.pair
        address = pair.rx_base + queue.taken % pair.n_slots * pair.slot_size
        queue.taken += 1
        sip, node = self._wiring.locate_pe(pair.peer)
        credit = Packet(
            Kind.IPCQ_CREDIT, self._wiring.place.sip, self._wiring.node, sip, node, pair.credit_bytes, address,
            sent_ps=self._wiring.engine.now_ps,
        )  # fmt: skip
        self._wiring.fabric.send(credit, self._wiring.node, self._wiring.engine.now_ps)

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """An arrival in one of our rings or a credit for one of our peers'."""
        handle = self._credited if packet.kind is Kind.IPCQ_CREDIT else self._arrived
        self._wiring.engine.at(tail_ps + self._overhead_ps, handle, packet)

    @property
    def at_rest(self) -> bool:
        """Whether every credit is home and every arrival has been read."""
        queues = self._directions.values()
        return all(queue.credits == queue.pair.n_slots and queue.filled == queue.taken for queue in queues)

    def pointers(self) -> tuple[QueuePointers, ...]:
        """The registers of every direction, sorted, with the places of its rings."""
        addresses = AddressMap(self._wiring.topology)
        return tuple(
            QueuePointers(
                *self._wiring.place, pair.direction, pair.peer, pair.n_slots, pair.slot_size,
                queue.sent, queue.sent - (pair.n_slots - queue.credits), queue.credits, decoded(pair.tx_base, addresses),
                queue.filled, queue.taken, decoded(pair.rx_base, addresses),
            )
            for queue, pair in ((self._directions[direction], self.pair(direction)) for direction in self.directions)
        )  # fmt: skip

    def check_idle(self) -> None:
        """At the end of a run every credit is home and every arrival was taken."""
        for direction, queue in self._directions.items():
            if queue.credits != queue.pair.n_slots or queue.arrived:
                raise InvariantError(
                    f"ipcq of {self._wiring.place}, direction {direction}",
                    f"{queue.credits} of {queue.pair.n_slots} credits are home, {len(queue.arrived)} slots were never received",
                )

    def _arrived(self, packet: Packet) -> None:
        queue = self._owner(packet.address, receive=True)
        now_ps, place = self._wiring.engine.now_ps, self._wiring.place
        record = OpRecord(
            "pe_ipcq", "arrival", packet.sent_ps, now_ps, place.cube, place.pe, packet.address, packet.total,
            flow=packet.flow, flow_end=True,
        )  # fmt: skip
        self._wiring.record(record)
        base, size = queue.pair.rx_base, queue.pair.slot_size
        slot = base + (packet.address - base) // size * size
        queue.filled += 1
        queue.arrived.append(Slot(slot, packet.total, ELEMENTS[packet.element]))
        if self.listener is not None:
            self.listener(queue.pair.direction)

    def _credited(self, packet: Packet) -> None:
        queue = self._owner(packet.address, receive=False)
        queue.credits += 1
        if queue.sender is not None:
            sender, queue.sender = queue.sender, None
            sender.complete(queue.take_slot())

    def _owner(self, address: int, *, receive: bool) -> _Direction:
        for queue in self._directions.values():
            base = queue.pair.rx_base if receive else queue.pair.tx_base
            if base <= address < base + queue.pair.ring_bytes:
                return queue
        raise InvariantError(f"ipcq of {self._wiring.place}", f"address {address:#x} belongs to none of its rings")
