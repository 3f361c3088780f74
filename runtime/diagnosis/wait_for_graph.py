"""Builds the wait-for graph of a run in which no event is left, and finds its cycles and chains.

A vertex is a hardware thread of a PE, an edge leads from a thread to the thread that it depends on:

- A thread with a blocked kernel depends on the same kind of thread of its peer: a collective on the
  peer's collective, any other kernel on the peer's other kernel.
- A thread without a blocked kernel can proceed only when its rank launches a kernel. So it depends
  on the first blocked thread of its own SIP, which its rank waits for; or on nothing, if the rank
  has finished or waits for no kernel.

Every vertex has at most one outgoing edge (a functional graph). Therefore each path either closes
to a cycle or is a chain, which ends at a thread without a dependency or at another path. One pass
that visits every vertex once finds all of them; a graph library would add nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from runtime.core.coordinates import PeCoordinates
from runtime.wire.reports import BlockedPe, SipReport


class PeThread(NamedTuple):
    """A vertex: the thread of a PE that runs collectives, or the thread that runs other kernels."""

    coordinates: PeCoordinates
    collective: bool

    def __str__(self) -> str:
        return str(self.coordinates)


class PathEnd(Enum):
    """The reason why a path ends at its last thread."""

    CYCLE = "its last thread depends on its first"
    NO_DEPENDENCY = "its last thread depends on nothing"
    JOINS_CYCLE = "its last thread depends on a thread of a cycle"
    JOINS_PATH = "its last thread depends on a thread of another path"


class WaitPath(NamedTuple):
    """Threads, each of which depends on the next; the last one depends on `joined`, if any."""

    threads: tuple[PeThread, ...]
    end: PathEnd
    joined: PeThread | None = None

    @property
    def is_cycle(self) -> bool:
        """Whether the threads depend on each other in a cycle."""
        return self.end is PathEnd.CYCLE


class WaitForGraph:
    """The wait-for graph of the reports of all SIPs, in ascending order of the SIPs.

    `blocked` holds the blocked kernels by thread, `reports` the reports by SIP.
    """

    def __init__(self, reports: Sequence[SipReport]) -> None:
        self.reports: Mapping[int, SipReport] = {report.sip: report for report in reports}
        self.blocked: dict[PeThread, BlockedPe] = {
            PeThread(PeCoordinates(pe.sip, pe.cube, pe.pe), bool(pe.call)): pe
            for report in reports
            for pe in report.blocked
        }
        # In descending order the lowest thread of a SIP is stored last and replaces the others:
        # a rank that waits for several kernels is represented by the first of them.
        self._first_blocked = {
            thread.coordinates.sip: thread for thread in sorted(self.blocked, reverse=True)
        }
        self._peers: dict[PeCoordinates, list[PeCoordinates]] = {}
        for queue in (queue for report in reports for queue in report.queues):
            coordinates = PeCoordinates(queue.sip, queue.cube, queue.pe)
            self._peers.setdefault(coordinates, []).append(PeCoordinates(*queue.peer))

    def paths(self) -> list[WaitPath]:
        """All cycles, then all chains, each group in the order of their threads."""
        return sorted(self._paths(), key=lambda path: (not path.is_cycle, path.threads))

    def dependency(self, thread: PeThread) -> PeThread | None:
        """The thread that `thread` depends on: its outgoing edge."""
        blocked = self.blocked.get(thread)
        if blocked is None:
            return self._first_blocked.get(thread.coordinates.sip)
        # A send waits for slots which the peer frees, a receive for a slot which the peer fills.
        if blocked.peer is not None:
            return PeThread(PeCoordinates(*blocked.peer), thread.collective)
        if blocked.operation == "barrier":
            # All PEs that it waits for have ended.
            return None
        # A receive from any direction depends on all peers at once. No peer sends, so a peer that
        # is blocked itself leads to the cause; the lowest of them makes the choice deterministic.
        peers = self._peers.get(thread.coordinates, [])
        candidates = [PeThread(peer, thread.collective) for peer in peers]
        return min(candidates, key=lambda peer: (not self._waits(peer), peer), default=None)

    def _waits(self, thread: PeThread) -> bool:
        return thread in self.blocked or thread.coordinates.sip in self._first_blocked

    def _paths(self) -> Iterator[WaitPath]:
        dependencies = {thread: self.dependency(thread) for thread in self.blocked}
        targets = set(dependencies.values())
        visited: set[PeThread] = set()
        # Threads without an incoming edge come first: a chain is then found from its beginning.
        # What remains afterwards lies on cycles only.
        for start in sorted(dependencies, key=lambda thread: (thread in targets, thread)):
            path: list[PeThread] = []
            thread: PeThread | None = start
            while thread is not None and thread not in visited:
                visited.add(thread)
                path.append(thread)
                thread = self.dependency(thread)
            if path:
                yield from _split(path, thread)


def _split(path: list[PeThread], dependency: PeThread | None) -> Iterator[WaitPath]:
    """The cycle in `path`, if its last thread depends on one of them, and the chain before it."""
    if dependency is None:
        yield WaitPath(tuple(path), PathEnd.NO_DEPENDENCY)
    elif dependency not in path:
        yield WaitPath(tuple(path), PathEnd.JOINS_PATH, dependency)
    else:
        start = path.index(dependency)
        cycle = path[start:]
        # A cycle has no first thread; it begins at its lowest thread, independent of the search.
        first = cycle.index(min(cycle))
        yield WaitPath((*cycle[first:], *cycle[:first]), PathEnd.CYCLE)
        if start:
            yield WaitPath(tuple(path[:start]), PathEnd.JOINS_CYCLE, dependency)
