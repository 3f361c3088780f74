"""Insertions of events by texts, interpreted; events.pxd has the C version."""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from sip_node.pdes.engine import Engine


class Resumable(Protocol):
    """An object that continues, as `sip_node.chip.completion.Continuation`."""

    def resume(self, done: Any) -> None:
        """Continue; `done` is None for an event."""
        ...


def resume_at(engine: "Engine", time_ps: int, continuation: Resumable) -> None:
    """Resume `continuation` with None at a time.

    It is for objects of one operation: an actor keeps its number in the calendar to the end.
    """
    engine.at(time_ps, continuation.resume, None)
