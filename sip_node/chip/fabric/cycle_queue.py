"""The agenda of the clocked routers: which virtual channels have a request in which cycle.

A cycle without requests has no event; a cycle in which several routers work has one. All
effects of a router on another one take a cycle or more, so the order of the routers in a cycle has
no influence.
"""

from typing import Any, Protocol

from sip_node.pdes.engine import Engine

AFTER_ALL = 2
"""After SimPy's NORMAL (1): what arrives at the picosecond of a cycle is visible in it."""


class Arbiter(Protocol):
    """A router, or the source of a link: serves the channels with a request in the same cycle."""

    requests: list[Any]

    def arbitrate(self, now: int) -> None:
        """Serve `requests` in cycle `now`, and empty it."""
        ...


class Requester(Protocol):
    """A channel with a flit that can move, or a head that needs a channel."""

    @property
    def arbiter(self) -> Arbiter:
        """Where its requests go."""
        ...


class CycleQueue:
    """Calls the arbiters of one SIP, once in each cycle with a request to them."""

    def __init__(self, engine: Engine, period_ps: int) -> None:
        self._engine, self.period_ps = engine, period_ps
        self._requests: dict[int, list[Requester]] = {}

    def add(self, channel: Requester, cycle: int) -> None:
        """`channel` has a request in `cycle`, which is to come; it has one request at a time."""
        requests = self._requests.get(cycle)
        if requests is None:
            self._requests[cycle] = [channel]
            self._engine.at(cycle * self.period_ps, self._execute, cycle, priority=AFTER_ALL)
        else:
            requests.append(channel)

    def _execute(self, cycle: int) -> None:
        arbiters: list[Arbiter] = []
        for channel in self._requests.pop(cycle):
            arbiter = channel.arbiter
            if not arbiter.requests:
                arbiters.append(arbiter)
            arbiter.requests.append(channel)
        for arbiter in arbiters:
            arbiter.arbitrate(cycle)
