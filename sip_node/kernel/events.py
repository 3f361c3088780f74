"""Insertions of events by texts, interpreted; events.pxd has the C version."""

from typing import Any, Protocol

from sip_node.kernel.calendar import AFTER_ALL, Calendar
from sip_node.kernel.component import Component


class Resumable(Protocol):
    """An object that continues, as `sip_node.chip.completion.Continuation`."""

    def resume(self, done: Any) -> None:
        """Continue; `done` is None for an event."""
        ...


def resume_at(engine: Calendar, time_ps: int, continuation: Resumable) -> None:
    """Resume `continuation` with None at a time.

    It is for objects of one operation: an actor keeps its number in the calendar to the end.
    """
    engine.at(time_ps, continuation.resume, None)


def after_all(component: Component, time_ps: int, step: int, subject: Any) -> None:
    """Let a component go on with a step at a time, behind all other events of that time."""
    component.engine.at(time_ps, component.proceed, step, subject, priority=AFTER_ALL)
