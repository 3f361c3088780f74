"""The events of an LP in one order, interpreted: SimPy's queue, with calls in it.

A call is a pair in place of an event, under SimPy's key (time, priority, order of scheduling). In
C, calls are in a heap of their own: see calendar.pyx.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from sys import maxsize
from typing import Any, cast

import simpy
from simpy.core import EmptySchedule
from simpy.events import EventPriority

from runtime.core.simtime import NEVER_PS

ARRIVALS_FIRST = -1
"""The priority of arrivals from other SIPs, before SimPy's URGENT (0) and every local event."""
NORMAL = EventPriority(1)
AFTER_ALL = 2
"""The priority behind all other events of the same time."""

_Call = tuple[Callable[..., None], tuple[Any, ...]]
_Entry = tuple[int, int, int, simpy.Event | _Call]


class Calendar(simpy.Environment):
    """The first base of `Engine`, whose second base is `simpy.Environment`."""

    def __init__(self) -> None:
        super().__init__(initial_time=0)
        # SimPy's own heap, under a type that has calls in it.
        self._entries = cast("list[_Entry]", self._queue)
        # SimPy's `now` is a property of type float; an int attribute is exact and faster.
        self.now_ps = 0
        """The time of the event being executed."""
        self.events = 0

    def at(
        self, time_ps: int, function: Callable[..., None], *args: object, priority: int = NORMAL
    ) -> None:
        """Call `function(*args)` at `time_ps`, which must not be in the past.

        Calls at equal times run in the order in which they were scheduled. Raises `OverflowError`
        for a time of `NEVER_PS` or later.
        """
        assert time_ps >= self.now_ps, f"{function} at {time_ps} ps, now is {self.now_ps} ps"
        if time_ps >= NEVER_PS:
            raise _too_late(time_ps)
        # The counter is SimPy's, so calls and events have one order at equal time and priority.
        heappush(self._entries, (time_ps, priority, next(self._eid), (function, args)))

    def schedule(
        self, event: simpy.Event, priority: EventPriority = NORMAL, delay: float = 0
    ) -> None:
        """Schedule an event of SimPy; raises `TypeError` unless the delay is an integer."""
        # A float in one event would make all later times of its process floats.
        if not isinstance(delay, int):
            raise TypeError(f"a delay of {delay!r} ps: simulated time is an int of picoseconds")
        if self.now_ps + delay >= NEVER_PS:
            raise _too_late(self.now_ps + delay)
        super().schedule(event, priority, delay)

    def step(self) -> None:
        """Execute the next event; raises SimPy's `EmptySchedule` when there is none."""
        try:
            entry = self._entries[0]
        except IndexError:
            raise EmptySchedule from None
        self.now_ps = entry[0]
        event = entry[3]
        # A call: no callbacks, no value and no failure to look after.
        if isinstance(event, tuple):
            heappop(self._entries)
            # SimPy's own clock, which a process that is created in the call reads.
            self._now = self.now_ps
            function, args = event
            function(*args)
        else:
            super().step()

    def next_ps(self) -> int:
        """The time of the next event, `NEVER_PS` if there is none."""
        return self._entries[0][0] if self._entries else NEVER_PS

    def run_before(self, bound_ps: int, at_most: int = maxsize) -> int:
        """Execute the events with time < `bound_ps`, `at_most` of them; returns their number.

        Steps that a product skips count as well, and may exceed the limit.
        """
        # Local names, since this loop runs once for every event of the simulation.
        entries, step = self._entries, self.step
        count = 0
        while entries and entries[0][0] < bound_ps and count < at_most:
            step()
            count += 1
        self.events += count
        return count


def _too_late(time_ps: int) -> OverflowError:
    return OverflowError(f"an event at {time_ps} ps: a run ends before {NEVER_PS} ps")
