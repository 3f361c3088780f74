"""The IPCQ of a PE: queue tables by name. It keeps heads, tails and credits; the data moves through the DMA.

A sender takes a slot of the peer's receive ring, writes it, and the slot's metadata arrives with the data. With no slot left
it sleeps. The receiver gives a slot back with a credit that travels the fabric. An arrival belongs to the direction whose own
ring holds its address, a credit to the direction whose peer ring does; who sent it does not matter, so two directions may
join the same two PEs, and several tables may hold queues between them.
"""

from bisect import bisect_right, insort
from collections.abc import Sequence

from runtime.core.errors import InvariantError, IpcqInstallError
from runtime.core.requests import QueuePair
from runtime.core.simtime import ps_from_ns
from runtime.core.trace import OpRecord
from runtime.model.addresses import AddressMap
from runtime.wire.messages import QueuePointers
from sip_node.chip.fabric.packet import ELEMENTS, Kind, Packet
from sip_node.chip.pe.context import PeContext
from sip_node.chip.pe.queue_table import Queue, QueueTable, Slot

_NO_QUEUES = ""


class PeIpcq:
    """The queue tables of one PE."""

    def __init__(self, context: PeContext) -> None:
        self._context = context
        self._overhead_ps = ps_from_ns(context.topology.pe.ipcq.overhead_ns)
        self._tables = {_NO_QUEUES: QueueTable(_NO_QUEUES, (), context)}
        self._receives, self._sends = _Rings(), _Rings()

    def install(self, table: str, pairs: Sequence[QueuePair]) -> None:
        """Install a table, once; receive rings must not overlap, those of other tables included."""
        at = self._context.coordinates
        if table in self._tables:
            raise IpcqInstallError(
                at, f"the queues {table!r} are installed already; a PE takes each table once"
            )
        installed = QueueTable(table, pairs, self._context)
        for queue in installed.queues:
            if queue.pair.rx_base is not None:
                other = self._receives.add(queue.pair.rx_base, queue)
                if other is not None:
                    mine, theirs = (
                        f"{each.table.name} {each.pair.direction}" for each in (queue, other)
                    )
                    begin = max(queue.pair.rx_base, other.pair.rx_base or 0)
                    raise IpcqInstallError(
                        at, f"receive rings of {theirs} and {mine} overlap at {begin:#x}"
                    )
            if queue.pair.tx_base is not None:
                self._sends.add(queue.pair.tx_base, queue)
        self._tables[table] = installed

    def table(self, name: str) -> QueueTable:
        """The queues of a table; none if it is not installed here."""
        return self._tables.get(name, self._tables[_NO_QUEUES])

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """An arrival in one of our rings or a credit for one of our peers'."""
        handle = self._credited if packet.kind is Kind.IPCQ_CREDIT else self._arrived
        self._context.engine.at(tail_ps + self._overhead_ps, handle, packet)

    @property
    def at_rest(self) -> bool:
        """Whether every credit is home and every arrival has been read."""
        return all(queue.at_rest for queue in self._queues)

    def pointers(self) -> tuple[QueuePointers, ...]:
        """The registers of every queue, by table and direction."""
        addresses = AddressMap(self._context.topology)
        return tuple(
            pointers for table in self._tables.values() for pointers in table.pointers(addresses)
        )

    def check_idle(self) -> None:
        """At the end of a run every credit is home and every arrival was taken."""
        for table in self._tables.values():
            table.check_idle()

    @property
    def _queues(self) -> Sequence[Queue]:
        return [queue for table in self._tables.values() for queue in table.queues]

    def _arrived(self, packet: Packet) -> None:
        queue = self._owner(self._receives, packet.address)
        now_ps, at = self._context.engine.now_ps, self._context.coordinates
        record = OpRecord(
            "pe_ipcq",
            "arrival",
            packet.sent_ps,
            now_ps,
            at.cube,
            at.pe,
            packet.address,
            packet.total,
            flow=packet.flow,
            flow_end=True,
        )
        self._context.record(record)
        base, size = queue.pair.rx_base, queue.pair.slot_size
        assert base is not None
        slot = base + (packet.address - base) // size * size
        queue.fill(Slot(slot, packet.total, ELEMENTS[packet.element], packet.call))

    def _credited(self, packet: Packet) -> None:
        self._owner(self._sends, packet.address).credit()

    def _owner(self, rings: "_Rings", address: int) -> Queue:
        queue = rings.owner(address)
        if queue is None:
            raise InvariantError(
                f"ipcq of {self._context.coordinates}",
                f"address {address:#x} belongs to none of its rings",
            )
        return queue


class _Rings:
    """Rings by address."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._queues: dict[int, Queue] = {}

    def add(self, base: int, queue: Queue) -> Queue | None:
        """Note the ring of a queue; returns one that it overlaps with."""
        last = base + queue.pair.ring_bytes - 1
        after = bisect_right(self._bases, last)
        if (
            after
            and self._bases[after - 1] + self._queues[self._bases[after - 1]].pair.ring_bytes > base
        ):
            return self._queues[self._bases[after - 1]]
        insort(self._bases, base)
        self._queues[base] = queue
        return None

    def owner(self, address: int) -> Queue | None:
        """The queue whose ring holds `address`."""
        after = bisect_right(self._bases, address)
        if not after:
            return None
        base = self._bases[after - 1]
        queue = self._queues[base]
        return queue if address < base + queue.pair.ring_bytes else None
