"""The event engine of one LP: a SimPy environment with integer picoseconds and calls instead of processes."""

from collections.abc import Callable
from typing import Any, cast

import simpy
from simpy.core import Infinity
from simpy.events import EventPriority

from runtime.simtime import NEVER_PS

ARRIVALS_FIRST = -1
"""Priority before SimPy's URGENT (0): what arrives from other SIPs at t precedes every local event at t."""
NORMAL = 1


class _Call(simpy.Event):
    """An event that calls one function: what a Timeout with a callback does, without its bookkeeping."""

    def __init__(self, function: Callable[..., None], args: tuple[Any, ...]) -> None:  # no super(): it is born triggered
        self.callbacks = [self._invoke]
        self._ok = True
        self._value = None
        self._function = function
        self._args = args

    def _invoke(self, _event: simpy.Event) -> None:
        self._function(*self._args)


class Engine:
    """Time and calls. All components of an LP share one engine; nothing in it depends on how many SIPs there are."""

    def __init__(self) -> None:
        self._env = simpy.Environment(initial_time=0)
        self.events = 0

    @property
    def now_ps(self) -> int:
        """The time of the event being executed."""
        return int(self._env.now)

    def at(self, time_ps: int, function: Callable[..., None], *args: object, priority: int = NORMAL) -> None:
        """Call `function(*args)` at `time_ps`, which must not be in the past; equal times run in the order of asking."""
        delay = time_ps - self._env.now
        assert delay >= 0, f"{function} asked for {time_ps} ps, now is {self._env.now} ps"
        self._env.schedule(_Call(function, args), cast("EventPriority", priority), delay)

    def next_ps(self) -> int:
        """The time of the next event, `NEVER_PS` if there is none."""
        peek = self._env.peek()
        return NEVER_PS if peek == Infinity else int(peek)

    def run_before(self, bound_ps: int) -> int:
        """Execute every event with time < `bound_ps`; returns how many that were."""
        env = self._env
        count = 0
        while env.peek() < bound_ps:
            env.step()
            count += 1
        self.events += count
        return count
