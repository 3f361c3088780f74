"""The agenda of the clocked routers: which virtual channels have a request in which cycle.

A cycle without requests has no event; a cycle in which several routers work has one. All
effects of a router on another one take a cycle or more, so the order of the routers in a cycle has
no influence.
"""

from typing import TYPE_CHECKING, Any

from sip_node.kernel import events
from sip_node.kernel.component import Component
from sip_node.kernel.containers import linked_list as lists
from sip_node.kernel.containers.linked_list import Linked, LinkedGroup, LinkedList, LinkedMember

if TYPE_CHECKING:
    from sip_node.kernel.calendar import Calendar

DORMANT = -1
"""Instead of a cycle: not before a flit, a credit or a channel arrives."""
_PLACES = 256
"""The agenda is a table of this many lists, one of which has a cycle; a power of two."""


class Arbiter(LinkedGroup):
    """A router, or the source of a link: its members are the requests of a cycle."""

    def __init__(self, queue: "CycleQueue") -> None:
        super().__init__()
        self.queue = queue
        self.queue.hold(self)

    def arbitrate(self, now: int) -> None:  # noqa: ARG002 - classes of its own serve them in it
        """Serve the requests of cycle `now`, and take them."""
        lists.take(self.members)


class Requester(LinkedMember):
    """A channel with a flit that can move, or a head that needs a channel."""

    queue: "CycleQueue"

    def __init__(self, arbiter: Arbiter | None) -> None:
        super().__init__()
        # None at an output that ejects: such a channel has no requests.
        if arbiter is not None:
            self.request_from(arbiter)

    def request_from(self, arbiter: Arbiter) -> None:
        """Have requests to an arbiter."""
        self.group, self.queue = arbiter, arbiter.queue
        self.queue.hold(self)

    def earliest(self, cycle: int) -> int:
        """The first cycle from `cycle` on in which it can request a link, or `DORMANT`."""
        raise NotImplementedError(type(self).__name__)

    def wake(self, cycle: int) -> None:
        """Request a link from `cycle` on."""
        cycle = self.earliest(cycle)
        if cycle != DORMANT:
            self.queue.add(self, cycle)


class Cycle(LinkedList):
    """The requesters of cycle `number`; `following` is another cycle in the same place."""

    def __init__(self) -> None:
        super().__init__()
        self.number = DORMANT
        self.following: Any = None


class CycleQueue(Component):
    """Calls the arbiters of one SIP, once in each cycle with a request to them."""

    def __init__(self, engine: "Calendar", period_ps: int) -> None:
        self.join(engine)
        self.period_ps = period_ps
        self._places: list[Any] = [None] * _PLACES
        self._free: list[Cycle] = []
        self._active, self._held = LinkedList(), list[Linked]()
        # That of the last request, which may be past.
        self._latest = Cycle()

    def hold(self, item: Linked) -> None:
        """Hold an arbiter or a channel, which the lists do not."""
        self._held.append(item)

    def add(self, channel: Requester, number: int) -> None:
        """`channel` has a request in a cycle, which is to come; it has one request at a time."""
        assert channel.queue is self, "requests are those of the queue's own arbiters"
        cycle = self._latest
        if cycle.number != number:
            cycle = self._latest = self._cycle(number)
        lists.put(cycle, channel)

    def _cycle(self, number: int) -> Cycle:
        cycle = self._places[number & (_PLACES - 1)]
        while cycle is not None and cycle.number != number:
            cycle = cycle.following
        return self._begin(number) if cycle is None else cycle

    def _begin(self, number: int) -> Cycle:
        """The first request of a cycle: it has an event."""
        cycle = self._free.pop() if self._free else Cycle()
        place = number & (_PLACES - 1)
        cycle.number, cycle.following = number, self._places[place]
        self._places[place] = cycle
        # Behind all other events of this time: a packet that arrives at a clock edge takes part in
        # the arbitration of that cycle, also if its event was scheduled later than this one.
        events.after_all(self, number * self.period_ps, 0, cycle)
        return cycle

    def proceed(self, step: int, subject: Any) -> None:  # noqa: ARG002 - it has one step
        """Call the arbiters with a request in a cycle, each once."""
        cycle: Cycle = subject
        self._remove(cycle)
        active, now = self._active, cycle.number
        lists.deal(cycle, active)
        self._free.append(cycle)
        item = lists.take(active)
        while item is not None:
            arbiter: Arbiter = item
            item = lists.following(arbiter)
            arbiter.arbitrate(now)

    def _remove(self, cycle: Cycle) -> None:
        place = cycle.number & (_PLACES - 1)
        other = self._places[place]
        if other is cycle:
            self._places[place] = cycle.following
        else:
            while other.following is not cycle:
                other = other.following
            other.following = cycle.following
