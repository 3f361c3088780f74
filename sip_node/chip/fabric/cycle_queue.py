"""The agenda of the clocked routers: which virtual channels have a request in which cycle.

A cycle without requests has no event; a cycle in which several routers work has one. All
effects of a router on another one take a cycle or more, so the order of the routers in a cycle has
no influence.
"""

from typing import TYPE_CHECKING, Any

from sip_node.kernel import events
from sip_node.kernel import linked_list as lists
from sip_node.kernel.component import Component
from sip_node.kernel.linked_list import Linked, LinkedList

if TYPE_CHECKING:
    from sip_node.pdes.engine import Engine

DORMANT = -1
"""Instead of a cycle: not before a flit, a credit or a channel arrives."""
_PLACES = 256
"""The agenda is a table of this many lists, one of which has a cycle; a power of two."""


class Arbiter(Linked):
    """A router, or the source of a link: it serves the requests of a cycle together."""

    __slots__ = ("queue", "requests")

    def __init__(self, queue: "CycleQueue") -> None:
        super().__init__()
        self.queue, self.requests = queue, LinkedList()

    def arbitrate(self, now: int) -> None:  # noqa: ARG002 - classes of its own serve them in it
        """Serve the requests of cycle `now`, and take them."""
        lists.take(self.requests)


class Requester(Linked):
    """A channel with a flit that can move, or a head that needs a channel."""

    __slots__ = ("arbiter",)

    def __init__(self, arbiter: Arbiter | None) -> None:
        super().__init__()
        # None at an output that ejects: such a channel has no requests.
        self.arbiter = arbiter

    def earliest(self, cycle: int) -> int:
        """The first cycle from `cycle` on in which it can request a link, or `DORMANT`."""
        raise NotImplementedError(type(self).__name__)

    def wake(self, cycle: int) -> None:
        """Request a link from `cycle` on."""
        cycle = self.earliest(cycle)
        if cycle != DORMANT:
            assert self.arbiter is not None, "a channel with flits has an arbiter"
            self.arbiter.queue.add(self, cycle)


class Cycle(LinkedList):
    """The requesters of cycle `number`; `following` is another cycle in the same place."""

    __slots__ = ("following", "number")

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.following: Any = None


class CycleQueue(Component):
    """Calls the arbiters of one SIP, once in each cycle with a request to them."""

    __slots__ = ("_active", "_free", "_places", "period_ps")

    def __init__(self, engine: "Engine", period_ps: int) -> None:
        self.join(engine)
        self.period_ps = period_ps
        self._places: list[Any] = [None] * _PLACES
        self._free: list[Cycle] = []
        self._active = LinkedList()

    def add(self, channel: Requester, number: int) -> None:
        """`channel` has a request in a cycle, which is to come; it has one request at a time."""
        cycle = self._places[number & (_PLACES - 1)]
        while cycle is not None and cycle.number != number:
            cycle = cycle.following
        if cycle is None:
            cycle = self._begin(number)
        lists.put(cycle, channel)

    def _begin(self, number: int) -> Cycle:
        """The first request of a cycle: it has an event."""
        cycle = self._free.pop() if self._free else Cycle()
        place = number & (_PLACES - 1)
        cycle.number, cycle.following = number, self._places[place]
        self._places[place] = cycle
        events.after_all(self, number * self.period_ps, 0, cycle)
        return cycle

    def proceed(self, step: int, subject: Any) -> None:  # noqa: ARG002 - it has one step
        """Call the arbiters with a request in a cycle, each once."""
        cycle: Cycle = subject
        self._remove(cycle)
        active, now = self._active, cycle.number
        item = lists.take(cycle)
        self._free.append(cycle)
        while item is not None:
            channel: Requester = item
            item = lists.following(channel)
            arbiter = channel.arbiter
            assert arbiter is not None, "a channel with flits has an arbiter"
            if lists.is_empty(arbiter.requests):
                lists.put(active, arbiter)
            lists.put(arbiter.requests, channel)
        item = lists.take(active)
        while item is not None:
            arbiter = item
            item = lists.following(arbiter)
            arbiter.arbitrate(now)

    def _remove(self, cycle: Cycle) -> None:
        place = cycle.number & (_PLACES - 1)
        other = self._places[place]
        if other is cycle:
            self._places[place] = cycle.following
            return
        while other.following is not cycle:
            other = other.following
        other.following = cycle.following
