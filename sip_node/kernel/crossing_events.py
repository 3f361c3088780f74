"""Events of actors that are texts, interpreted; crossing_events.pxd has the C version."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from sip_node.pdes.engine import Engine


class ActorEvent(NamedTuple):
    """The values of an event."""

    tail_ps: int


class ActingText(Protocol):
    """An actor."""

    def act(self, event: ActorEvent, subject: Any) -> None:
        """Execute an event, inserted with `subject`."""
        ...


Act = Callable[[ActorEvent, Any], None]


def enlist(engine: "Engine", actor: ActingText) -> Act:  # noqa: ARG001 - in C, the engine numbers it
    """What names the actor in `schedule`."""
    return actor.act


def schedule(
    engine: "Engine", act: Act, time_ps: int, priority: int, tail_ps: int, subject: object
) -> None:
    """Insert an event of an actor."""
    engine.at(time_ps, act, ActorEvent(tail_ps), subject, priority=priority)
