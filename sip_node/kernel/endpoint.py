"""The end of a route that inserts its own events, interpreted; endpoint.pyx has the C version."""

from typing import Any

from sip_node.pdes.engine import Engine


class EventEndpoint:
    """A component that packets reach, and whose events are calls of its method `happen`."""

    _engine: Engine

    def join(self, engine: Engine) -> None:
        """Join the actors of a calendar; called once, by the constructor."""
        self._engine = engine

    def accept(self, packet: Any, tail_ps: int) -> None:
        """The head of a packet is here; its tail arrives at `tail_ps`."""
        self.take(packet, tail_ps)

    def take(self, packet: Any, tail_ps: int) -> None:
        """`accept` of the component, which in C is called without Python."""
        raise NotImplementedError(type(self).__name__)

    def schedule(self, time_ps: int, step: int, value: int, packet: Any) -> None:
        """Insert the event `happen(step, value, packet)` at a time."""
        self._engine.at(time_ps, self.happen, step, value, packet)

    def happen(self, step: int, value: int, packet: Any) -> None:
        """Execute an event of `schedule`."""
        raise NotImplementedError(type(self).__name__)
