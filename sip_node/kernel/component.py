"""Base classes of the components of a chip, which the calendar calls and packets reach."""

from typing import TYPE_CHECKING, Any

from sip_node.kernel.calendar import ARRIVALS_FIRST, Calendar

if TYPE_CHECKING:
    from sip_node.chip.fabric.packet import Packet


class Endpoint:
    """The end of routes, which packets reach."""

    __slots__ = ()

    def accept(self, packet: "Packet", tail_ps: int) -> None:
        """Take a packet whose head has arrived and whose tail arrives at `tail_ps`."""
        raise NotImplementedError(type(self).__name__)


class Component(Endpoint):
    """A part of a chip with its own events, and an endpoint if it has `accept`.

    An event has a step, which is a small number of the component's own, and a subject, an object of
    the component's own. A constructor calls `join` first.
    """

    __slots__ = ("engine",)

    def join(self, engine: Calendar) -> None:
        """Have events on `engine`."""
        self.engine = engine

    def later(self, time_ps: int, step: int, subject: Any) -> None:
        """Go on with a step at a time, behind all events that are at that time already."""
        self.engine.at(time_ps, self.proceed, step, subject)

    def ahead(self, time_ps: int, step: int, subject: Any) -> None:
        """Go on with a step at a time, ahead of all events that are not inserted by this method."""
        self.engine.at(time_ps, self.proceed, step, subject, priority=ARRIVALS_FIRST)

    def proceed(self, step: int, subject: Any) -> None:
        """Execute an event."""
        raise NotImplementedError(type(self).__name__)
