"""The IPCQ of a PE (inter-PE communication queues): queue tables, credits, arrivals.

It keeps counters and credits; the bytes move through the DMA. A sender reserves a slot in the
receive ring of its peer, writes it, and the metadata of the slot arrives with its last byte.
Without a credit the sender sleeps. The receiver returns a credit for every slot that it has read.

Packets name addresses, not queues. An arrival belongs to the direction whose own ring holds its
address, a credit to the direction whose ring at the peer does. So two directions may connect the
same two PEs, and several tables may hold queues between them.

The posted sends of a PE wait until their receive is posted at the peer (rendezvous). A message and
its receive have one id, the `call`. A receive that is posted sends a notice with the id to the PE
of the sender; a send that is posted waits for that notice, and is eligible then:

    sender                                   receiver
    send posted                              receive posted
        |  <------------- READY ----------------  |
    eligible: begins when no other send is in flight
        |  -------------- slots --------------->  |
        |  <------------ credits ---------------  |

The receive of an eligible send empties the ring, so a send in flight waits for credits only while
slots are read, and never for another call of the peer. One message is in flight at a time: slots of
two messages never mix in a ring, and the PE needs scratch for one message.
"""

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from runtime.core.errors import InvariantError, IpcqInstallError, TransferMismatchError
from runtime.core.requests import QueuePair, Transfer, elements_of
from runtime.core.simtime import ps_from_ns
from runtime.model.addresses import AddressMap
from runtime.wire.reports import QueuePointers
from sip_node.chip.fabric.packet import ELEMENTS, FabricTransfer, Kind, Packet
from sip_node.chip.kernel import ProgramRaised
from sip_node.chip.pe import queue_table as queue_states
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.queue_table import QueueState, QueueTable
from sip_node.kernel import records
from sip_node.kernel.component import Component

_PROCESSED = 0
_CREDIT, _READY = Kind.IPCQ_CREDIT, Kind.IPCQ_READY
_NO_QUEUES = ""
"""The name of the empty table, which a kernel without queues uses."""


class _PostedSend(NamedTuple):
    """A send of the message `call`; `begin` starts it."""

    call: str
    transfer: Transfer
    begin: Callable[[], None]


class PostedSends:
    """The sends that are posted on one PE, and the notices of receives that have no send yet."""

    def __init__(self, context: PeContext) -> None:
        self._context = context
        self._waiting: dict[str, _PostedSend] = {}
        self._notices: dict[str, str] = {}
        self._eligible: deque[_PostedSend] = deque()
        self._in_flight = False

    def post(self, call: str, transfer: Transfer, begin: Callable[[], None]) -> None:
        """Post a send; `begin()` is called as soon as its receive is posted and no other send is in
        flight. For the event loop only.
        """
        send = _PostedSend(call, transfer, begin)
        notice = self._notices.pop(call, None)
        if notice is None:
            self._waiting[call] = send
        else:
            self._match(send, notice)

    def ready(self, packet: Packet) -> None:
        """A peer has posted a receive."""
        # The queues need not be installed here: a receive may be posted long before its send.
        call, _, part = packet.transfer.call.partition(": ")
        send = self._waiting.pop(call, None)
        if send is None:
            self._notices[call] = part
        else:
            self._match(send, part)

    def ended(self) -> None:
        """The last byte of the send in flight has left."""
        self._in_flight = False
        # In an event of its own: a kernel that ends must not start another one from its stack.
        self._context.engine.at(self._context.engine.now_ps, self._begin_next)

    def check_idle(self) -> None:
        """Check that every receive had its send, at the end of a run."""
        if self._notices:
            raise InvariantError(
                f"ipcq of {self._context.coordinates}",
                f"a receive is posted that has no send: {min(self._notices)}",
            )

    def _match(self, send: _PostedSend, part: str) -> None:
        transfer = send.transfer
        # Checked before a byte is sent: the receiver would else wait for slots that never come.
        if elements_of(part) != transfer.elements:
            sip = self._context.coordinates.sip
            calls = [f"{send.call}: {each}" for each in (transfer.part, part)]
            raise ProgramRaised(sip, TransferMismatchError(sip, calls[0], transfer.peer, calls[1]))
        self._eligible.append(send)
        self._begin_next()

    def _begin_next(self) -> None:
        # One message at a time: slots of two messages would mix in a ring, and a ring is read in
        # order.
        if self._eligible and not self._in_flight:
            self._in_flight = True
            self._eligible.popleft().begin()


class RingsByAddress:
    """Rings that do not overlap, by address."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._queues: dict[int, QueueState] = {}

    def add(self, base: int, queue: QueueState) -> QueueState | None:
        """Add the ring of a queue; returns a queue whose ring it overlaps, which is not added."""
        # Rings do not overlap, so only the last one that begins before our end can reach into us.
        end = base + queue.n_slots * queue.slot_size
        before = self._last_from(end - 1)
        if before >= 0:
            other = self._queues[before]
            if before + other.n_slots * other.slot_size > base:
                return other
        insort(self._bases, base)
        self._queues[base] = queue
        return None

    def owner(self, address: int) -> QueueState | None:
        """The queue whose ring holds `address`."""
        base = self._last_from(address)
        if base < 0:
            return None
        queue = self._queues[base]
        return queue if address < base + queue.n_slots * queue.slot_size else None

    def _last_from(self, address: int) -> int:
        """The base of the last ring that begins at or before `address`; -1 without one."""
        after = bisect_right(self._bases, address)
        return self._bases[after - 1] if after else -1


class PeIpcq(Component):
    """The queue tables of one PE."""

    def __init__(self, context: PeContext) -> None:
        self.join(context.engine)
        self._context, self._log = context, context.log
        self._at_cube, self._at_pe = context.coordinates.cube, context.coordinates.pe
        self._overhead_ps = ps_from_ns(context.topology.pe.ipcq.overhead_ns)
        self._tables = {_NO_QUEUES: QueueTable(_NO_QUEUES, (), context)}
        self._receive_rings, self._send_rings = RingsByAddress(), RingsByAddress()
        self.sends = PostedSends(context)

    def install(self, table: str, pairs: Sequence[QueuePair]) -> None:
        """Install a table, once; its receive rings must not overlap those of any table."""
        pe = self._context.coordinates
        if table in self._tables:
            raise IpcqInstallError(
                pe, f"the queues {table!r} are installed already; a PE takes each table once"
            )
        installed = QueueTable(table, pairs, self._context)
        for queue in installed.queues:
            if queue.pair.rx_base is not None:
                self._add_receive_ring(queue.pair.rx_base, queue)
            if queue.pair.tx_base is not None:
                # Rings at the peer: their PE has checked them.
                self._send_rings.add(queue.pair.tx_base, queue)
        self._tables[table] = installed

    def table(self, name: str) -> QueueTable:
        """The queues of a table; the empty table if it is not installed here."""
        return self._tables.get(name, self._tables[_NO_QUEUES])

    def sending(self, address: int) -> QueueState | None:
        """The queue that sends into the ring of a peer which holds `address`."""
        return self._send_rings.owner(address)

    @property
    def overhead_ps(self) -> int:
        """The time from the last byte of a packet until it is processed."""
        return self._overhead_ps

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Take an arrival in one of our rings, a credit for the ring of a peer, or the notice of a
        peer that it has posted a receive.
        """
        # Counters change when the whole packet is here and the IPCQ has processed it.
        self.later(tail_ps + self._overhead_ps, _PROCESSED, packet)

    def proceed(self, step: int, subject: Any) -> None:  # noqa: ARG002 - it has one step
        """A packet is processed."""
        packet: Packet = subject
        transfer = packet.transfer
        kind = transfer.kind
        if kind == _CREDIT:
            self._owner(self._send_rings, transfer.address).credit()
        elif kind == _READY:
            self.sends.ready(packet)
        else:
            self._arrived(transfer)

    @property
    def at_rest(self) -> bool:
        """Whether every credit is back and every slot that arrived was read."""
        return all(queue.at_rest for table in self._tables.values() for queue in table.queues)

    def pointers(self) -> tuple[QueuePointers, ...]:
        """The registers of every queue, by table and direction."""
        addresses = AddressMap(self._context.topology)
        return tuple(
            pointers for table in self._tables.values() for pointers in table.pointers(addresses)
        )

    def check_idle(self) -> None:
        """Check after a run that every credit is back, and that every slot was taken."""
        for table in self._tables.values():
            table.check_idle()
        self.sends.check_idle()

    def _add_receive_ring(self, base: int, queue: QueueState) -> None:
        other = self._receive_rings.add(base, queue)
        if other is None:
            return
        mine, theirs = (f"{each.table} {each.pair.direction}" for each in (queue, other))
        overlap = max(base, other.pair.rx_base or 0)
        raise IpcqInstallError(
            self._context.coordinates,
            f"receive rings of {theirs} and {mine} overlap at {overlap:#x}",
        )

    def _arrived(self, slot: FabricTransfer) -> None:
        queue = self._owner(self._receive_rings, slot.address)
        now_ps = self.engine.now_ps
        records.add_arrival(self._log, "pe_ipcq", slot, now_ps, self._at_cube, self._at_pe)
        base, size = queue.rx_base, queue.slot_size
        # The last packet of a slot names an address inside of it, and the arrival repeats that.
        address = base + (slot.address - base) // size * size
        element = ELEMENTS[slot.element]
        queue.fill(queue_states.new_slot(address, slot.total, element, slot.call))

    def _owner(self, rings: RingsByAddress, address: int) -> QueueState:
        queue = rings.owner(address)
        if queue is None:
            raise InvariantError(
                f"ipcq of {self._context.coordinates}",
                f"address {address:#x} belongs to none of its rings",
            )
        return queue
