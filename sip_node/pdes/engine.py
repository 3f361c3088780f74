"""The event engine of one LP: a SimPy environment with integer picoseconds, and calls beside
SimPy's events.

Most of a chip's events only call a function at a time: a packet at its next link, a channel that
falls free. Such a call is a pair in SimPy's own queue, under SimPy's own order of (time, priority,
order of asking), without the event object around it: measured 1.3 times the events per second.
Processes, timeouts and stores work as in any SimPy environment.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, cast

import simpy
from simpy.core import EmptySchedule

from runtime.core.simtime import NEVER_PS

ARRIVALS_FIRST = -1
"""Priority before SimPy's URGENT (0): what arrives from other SIPs at t precedes every local event
at t.
"""
NORMAL = 1

_Call = tuple[Callable[..., None], tuple[Any, ...]]
_Entry = tuple[int, int, int, simpy.Event | _Call]


class Engine(simpy.Environment):
    """Time and calls. All components of an LP share one engine; nothing in it depends on how many
    SIPs there are.
    """

    def __init__(self) -> None:
        super().__init__(initial_time=0)
        self._entries = cast("list[_Entry]", self._queue)
        self.now_ps = 0
        """The time of the event being executed."""
        self.events = 0

    def at(
        self, time_ps: int, function: Callable[..., None], *args: object, priority: int = NORMAL
    ) -> None:
        """Call `function(*args)` at `time_ps`, which must not be in the past; equal times run in
        the order of asking.
        """
        assert time_ps >= self.now_ps, f"{function} asked for {time_ps} ps, now is {self.now_ps} ps"
        heappush(self._entries, (time_ps, priority, next(self._eid), (function, args)))

    def step(self) -> None:
        """Execute the next event; raises SimPy's `EmptySchedule` when there is none."""
        try:
            entry = self._entries[0]
        except IndexError:
            raise EmptySchedule from None
        self.now_ps = entry[0]
        event = entry[3]
        if isinstance(event, tuple):
            heappop(self._entries)
            self._now = self.now_ps
            function, args = event
            function(*args)
        else:
            super().step()

    def next_ps(self) -> int:
        """The time of the next event, `NEVER_PS` if there is none."""
        return self._entries[0][0] if self._entries else NEVER_PS

    def run_before(self, bound_ps: int) -> int:
        """Execute every event with time < `bound_ps`; returns how many that were."""
        entries, step = self._entries, self.step
        count = 0
        while entries and entries[0][0] < bound_ps:
            step()
            count += 1
        self.events += count
        return count
