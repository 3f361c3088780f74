"""The IPCQ of a PE (inter-PE communication queues): queue tables, credits, arrivals.

It keeps counters and credits; the bytes move through the DMA. A sender reserves a slot in the
receive ring of its peer, writes it, and the metadata of the slot arrives with its last byte.
Without a credit the sender sleeps. The receiver returns a credit for every slot that it has read.

Packets name addresses, not queues. An arrival belongs to the direction whose own ring holds its
address, a credit to the direction whose ring at the peer does. So two directions may connect the
same two PEs, and several tables may hold queues between them.
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from typing import Any

from runtime.core.errors import InvariantError, IpcqInstallError
from runtime.core.requests import QueuePair
from runtime.core.simtime import ps_from_ns
from runtime.model.addresses import AddressMap
from runtime.wire.reports import QueuePointers
from sip_node.chip.fabric.packet import ELEMENTS, FabricTransfer, Kind, Packet
from sip_node.chip.pe import queue_table as queue_states
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.posted_sends import PostedSends
from sip_node.chip.pe.queue_table import QueueState, QueueTable
from sip_node.kernel import records
from sip_node.kernel.component import Component

_PROCESSED = 0
_CREDIT, _READY = Kind.IPCQ_CREDIT, Kind.IPCQ_READY
_NO_QUEUES = ""
"""The name of the empty table, which a kernel without queues uses."""


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
        at = self._context.coordinates
        if table in self._tables:
            raise IpcqInstallError(
                at, f"the queues {table!r} are installed already; a PE takes each table once"
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
