"""The order of the stores of a launch by its messages, and by the barriers of a cube.

Two PEs of a launch may store to one element if the one store is before the other in every run. What
a kernel has stored before a send is before all that its receiver does behind the receive:

    PE 0    store x | send                  a point of the kernel: it is behind the store
    PE 1                   recv | store x   the kernel joins the point

A point keeps the points before it, and a search through them is made only for a store to an element
that another PE has stored to. Points have rising numbers, so it ends at those older than the first
store. Kernels have no points before they store or join one.

A sender waits for the credit of slot n - d before it fills slot n of a ring of d slots. So what is
before the receive of that slot is before the end of the send.

An atomic operation of memory that releases makes a point, which one that acquires on the same
element, and is served behind it, joins (`ReleasedRanges`).

Messages to other SIPs leave the order of this one. A message that comes from there counts as behind
all that have left: an order through other SIPs is never refused.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from weakref import ReferenceType

from runtime.core.coordinates import PeCoordinates

Writer = PeCoordinates | str
"""A PE, or the text of a program of a grid on a PE."""
_IN_FLIGHT = 1 << 62
"""The end of a store for which its kernel has not waited."""


class KernelPoint:
    """A point of a kernel, None outside of the SIP, behind the points `earlier`."""

    __slots__ = ("earlier", "kernel", "number")

    def __init__(
        self,
        kernel: "ReferenceType[KernelOrder] | None",
        number: int,
        earlier: Sequence["KernelPoint"],
    ) -> None:
        self.kernel, self.number, self.earlier = kernel, number, earlier


class FreedSlots:
    """The slots of a ring before `end` are free behind a point of the receiver."""

    __slots__ = ("end", "point")

    def __init__(self, end: int, point: KernelPoint | None) -> None:
        self.end, self.point = end, point


class QueuePoints:
    """The messages of one queue between PEs of a SIP that are not received, and its credits.

    It counts slots that were sent and received.
    """

    def __init__(self) -> None:
        self._messages = deque[KernelPoint | None]()
        self._credits = deque[FreedSlots]()
        self._sent = self._received = 0

    def send(self, point: KernelPoint | None, slots: int) -> int:
        """A message is sent at a point; returns the number of slots up to its end."""
        self._messages.append(point)
        self._sent += slots
        return self._sent

    def receive(
        self, slots: int, posted: KernelPoint | None
    ) -> tuple[KernelPoint | None, FreedSlots]:
        """The next message is received, by a receive that was posted at a point; returns the point
        of the send, and the credit of the slots.
        """
        self._received += slots
        credit = FreedSlots(self._received, posted)
        self._credits.append(credit)
        return self._messages.popleft(), credit

    def credited(self, end: int, depth: int) -> KernelPoint | None:
        """The point behind which slot `end - 1` of a ring of `depth` slots was free."""
        free = self._credits
        while free and free[0].end < end - depth:
            free.popleft()
        return free[0].point if free and end > depth else None


class StoreOrders:
    """The points of the kernels of a SIP, which have numbers below `numbers`."""

    def __init__(self) -> None:
        self.numbers = 0
        self._queues: dict[tuple[str, PeCoordinates, str], QueuePoints] = {}
        self._left: list[KernelPoint] = []
        self._outside: KernelPoint | None = None

    def queue(self, table: str, receiver: PeCoordinates, direction: str) -> QueuePoints:
        """The queue of a table that a PE receives from in a direction."""
        return self._queues.setdefault((table, receiver, direction), QueuePoints())

    def point(
        self, kernel: "ReferenceType[KernelOrder] | None", earlier: Sequence[KernelPoint]
    ) -> KernelPoint:
        """A new point."""
        self.numbers += 1
        return KernelPoint(kernel, self.numbers - 1, earlier)

    def leave(self, point: KernelPoint | None) -> None:
        """A message leaves the launches of the SIP at a point."""
        if point is not None:
            self._left.append(point)

    def entered(self) -> KernelPoint | None:
        """A message enters: the point behind all messages that have left; None without any."""
        if self._left:
            before = () if self._outside is None else (self._outside,)
            self._outside = self.point(None, (*before, *self._left))
            self._left = []
        return self._outside


class ProgramReference(ReferenceType["KernelOrder"]):
    """A kernel, or one of its programs of a grid, in stores and points. These outlive it, and a
    cycle would stay for as long as the run.
    """

    __slots__ = ()


class KernelOrder:
    """The place of one kernel in the order of its SIP, `orders`."""

    # Defaults of the class, since most kernels have neither messages nor stores.
    _last: KernelPoint | None = None
    _joined: tuple[KernelPoint, ...] = ()
    _store: "OrderedStore | None" = None

    def __init__(self, orders: StoreOrders) -> None:
        self._orders = orders
        self.own = ProgramReference(self)

    def point(self) -> KernelPoint | None:
        """A point of the kernel now; None where no store of a launch is before it."""
        if not (self._store or self._last or self._joined):
            return None
        last = () if self._last is None else (self._last,)
        self._last = self._orders.point(self.own, (*last, *self._joined))
        # What the kernel stores from now on is not before the point.
        self._joined, self._store = (), None
        return self._last

    def join(self, points: Iterable[KernelPoint | None]) -> None:
        """The kernel goes on behind points."""
        self._joined += tuple([each for each in points if each is not None])

    def ended(self, store: "OrderedStore") -> None:
        """The kernel has waited for a store in flight."""
        store.end = min(store.end, self._orders.numbers)

    def begin_program(self) -> None:
        """A program of a grid begins; nothing orders it behind earlier ones of the PE."""
        self.forget()
        self.own = ProgramReference(self)

    def forget(self) -> None:
        """The kernel goes on behind all stores of its launch: no earlier point matters."""
        self._last, self._joined, self._store = None, (), None

    def is_behind(self, kernel: "ReferenceType[KernelOrder]", end: int) -> bool:
        """Whether it is behind a point of a kernel with a number from `end` on."""
        pending, seen = list(self._joined), set[int]()
        if self._last is not None:
            pending.append(self._last)
        while pending:
            point = pending.pop()
            if point.number < end or point.number in seen:
                continue
            if point.kernel is kernel:
                return True
            seen.add(point.number)
            pending += point.earlier
        return False

    def _new_store(self, writer: Writer, *, in_flight: bool) -> "OrderedStore":
        """The stores of a writer of the kernel, of which one begins now."""
        if in_flight:
            # The kernel may send before it has waited for this one, and behind other stores.
            self._store = self._store or OrderedStore(self.own, writer, self._orders.numbers)
            return OrderedStore(self.own, writer, _IN_FLIGHT)
        store = self._store
        if store is None or store.writer != writer:
            store = self._store = OrderedStore(self.own, writer, self._orders.numbers)
        return store


class OrderedStore:
    """Stores of a kernel: before its points with numbers from `end` on."""

    __slots__ = ("end", "kernel", "writer")

    def __init__(self, kernel: ReferenceType[KernelOrder], writer: Writer, end: int) -> None:
        self.kernel, self.writer, self.end = kernel, writer, end

    def is_behind(self, other: "OrderedStore") -> bool:
        """Whether the store that begins is behind another one in every run."""
        if self.kernel is other.kernel:
            return self.writer == other.writer
        own = self.kernel()
        return own is not None and own.is_behind(other.kernel, other.end)


class AtomicStores:
    """The last atomic operations of several kernels on bytes of memory, none before the others."""

    __slots__ = ("members",)

    def __init__(self, members: tuple[OrderedStore, ...]) -> None:
        self.members = members

    def joined(self, stores: Iterable[OrderedStore]) -> "AtomicStores":
        """The same operations and later ones: of each writer the last."""
        last = {each.writer: each for each in (*self.members, *stores)}
        return AtomicStores(tuple(last.values()))

    def unordered(self, store: OrderedStore) -> OrderedStore | None:
        """A member that a store is not behind; None if it is behind all."""
        return next((each for each in self.members if not store.is_behind(each)), None)
