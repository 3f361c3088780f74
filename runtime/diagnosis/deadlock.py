"""Who waits for whom when nothing can happen any more: from the reports of all SIPs to the cycles and chains of waits.

A PE whose kernel waits depends on the peer of that direction: a collective on the collective there, another kernel on the
other kernel. A PE without such a kernel can be moved only by its rank, which depends on the kernels that it waits for, or has
finished its program. So everybody depends on somebody, round in a cycle or along a chain to a rank that has finished.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from runtime.ccl.call_signature import call_id
from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import CollectiveMismatchError, IpcqDeadlock
from runtime.wire.messages import BlockedPe, QueuePointers, SipReport


def deadlock(reports: Sequence[SipReport]) -> IpcqDeadlock | CollectiveMismatchError:
    """The error of a run that has ended although a rank has not finished; `reports` are those of all SIPs.

    Ranks that wait in different calls at one place of a group are a mismatch, whatever else there is.
    """
    ordered = sorted(reports, key=lambda report: report.sip)
    mismatch = _mismatch(ordered)
    if mismatch is not None:
        return mismatch
    queues = [queue for report in ordered for queue in report.queues]
    return IpcqDeadlock(
        max(report.time_ps for report in ordered),
        tuple(str(pe) for report in ordered for pe in report.blocked),
        tuple(f"rank {report.sip}: {_rank(report)}" for report in ordered if not report.finished),
        (*WaitForGraph(ordered).lines(), *_never_received(queues)),
        tuple(map(str, queues)),
    )


def _mismatch(reports: Sequence[SipReport]) -> CollectiveMismatchError | None:
    waiting: dict[str, BlockedPe] = {}
    for pe in (pe for report in reports for pe in report.blocked if pe.call):
        first = waiting.setdefault(call_id(pe.call), pe)
        if first.call != pe.call:
            return CollectiveMismatchError(first.sip, first.call, pe.sip, pe.call)
    return None


def _rank(report: SipReport) -> str:
    return f"waits for {report.waiting_for or 'something that was never asked for'}"


def _never_received(queues: Sequence[QueuePointers]) -> Iterator[str]:
    """What came and is not wanted: the trace of a direction or a number of messages that do not match."""
    alike = _Alike()
    for queue in queues:
        full = queue.peer_head - queue.tail
        if full:
            place, peer = PeCoordinates(queue.sip, queue.cube, queue.pe), PeCoordinates(*queue.peer)
            slots = f"{full} slot{'s' if full > 1 else ''}"
            text = (
                f"never received: {slots} from {peer} in {queue.table} {queue.direction} of {place}"
            )
            alike.add(text, (place, peer), (full, queue.table, queue.direction))
    yield from alike.lines()


class _Alike:
    """Lines, of which those that differ in cube and PE alone are told once."""

    def __init__(self) -> None:
        self._lines: dict[tuple[object, ...], tuple[str, int]] = {}

    def add(self, text: str, places: Sequence[PeCoordinates], rest: object) -> None:
        """A line about `places`; two lines are alike if their SIPs and `rest` are, and each keeps to one cube and PE."""
        same = len({(place.cube, place.pe) for place in places}) == 1
        shape = (tuple(place.sip for place in places) if same else tuple(places), rest)
        first, count = self._lines.get(shape, (text, 0))
        self._lines[shape] = first, count + 1

    def lines(self) -> Iterator[str]:
        """The first of each kind, and how many more there are."""
        for text, count in self._lines.values():
            more = count - 1
            yield (
                f"{text}; the same on {more} other {'PE' if more == 1 else 'PEs'}" if more else text
            )


class _Thread(NamedTuple):
    """One of the two threads of a PE: that of collectives, or that of other kernels."""

    place: PeCoordinates
    collective: bool

    def __str__(self) -> str:
        return str(self.place)


class _Path(NamedTuple):
    """Threads, each of which waits for the next one; the last for `onward`, about which there is a `remark`, or for nobody."""

    kind: str
    threads: tuple[_Thread, ...]
    onward: _Thread | None
    remark: str


class WaitForGraph:
    """The wait-for graph of all threads that wait, and of the ranks behind those that do not."""

    def __init__(self, reports: Sequence[SipReport]) -> None:
        self._reports = {report.sip: report for report in reports}
        waiting = [pe for report in reports for pe in report.blocked]
        self._blocked = {
            _Thread(PeCoordinates(pe.sip, pe.cube, pe.pe), bool(pe.call)): pe for pe in waiting
        }
        # The thread that the rank of a SIP waits for before it does anything else: the first of several.
        self._held_up_by = {
            thread.place.sip: thread for thread in sorted(self._blocked, reverse=True)
        }
        self._peers: dict[PeCoordinates, list[PeCoordinates]] = {}
        for queue in (queue for report in reports for queue in report.queues):
            self._peers.setdefault(PeCoordinates(queue.sip, queue.cube, queue.pe), []).append(
                PeCoordinates(*queue.peer)
            )

    def lines(self) -> tuple[str, ...]:
        """A line for every cycle, then for every chain; those that differ in cube and PE alone share one."""
        alike = _Alike()
        for path in sorted(self._paths(), key=lambda path: (path.kind != "cycle", path.threads)):
            doing = tuple(map(self._doing, path.threads))
            labels = [f"{thread} {does}" for thread, does in zip(path.threads, doing, strict=True)]
            onward = [f"{path.onward or ''} {path.remark}".strip()] if path.remark else []
            threads = path.threads if path.onward is None else (*path.threads, path.onward)
            places = [thread.place for thread in threads]
            alike.add(f"{path.kind}: {' -> '.join(labels + onward)}", places, (path.kind, doing))
        return tuple(alike.lines())

    def _paths(self) -> Iterator[_Path]:
        """Follow the waits from every thread that waits, those first for which nobody does; each one is passed once."""
        following = {thread: self._following(thread) for thread in self._blocked}
        awaited = set(following.values())
        passed: set[_Thread] = set()
        for start in sorted(following, key=lambda thread: (thread in awaited, thread)):
            path: list[_Thread] = []
            thread: _Thread | None = start
            while thread is not None and thread not in passed:
                passed.add(thread)
                path.append(thread)
                thread = self._following(thread)
            if path:
                yield from _closed(path, thread)

    def _following(self, thread: _Thread) -> _Thread | None:
        """Whom a thread waits for; of several, one that waits itself, since all of them do not come."""
        blocked = self._blocked.get(thread)
        if blocked is None:
            return self._held_up_by.get(thread.place.sip)
        peers = (
            self._peers.get(thread.place, [])
            if blocked.peer is None
            else [PeCoordinates(*blocked.peer)]
        )
        candidates = [_Thread(peer, thread.collective) for peer in peers]
        return min(candidates, key=lambda peer: (not self._waits(peer), peer), default=None)

    def _waits(self, thread: _Thread) -> bool:
        return thread in self._blocked or thread.place.sip in self._held_up_by

    def _doing(self, thread: _Thread) -> str:
        blocked, sip = self._blocked.get(thread), thread.place.sip
        if blocked is not None:
            return f"{blocked.operation} {blocked.direction}"
        report = self._reports.get(sip)
        if report is None:
            return "is not part of the run"
        runs_other = _Thread(thread.place, not thread.collective) in self._blocked
        nothing = f"runs no {'other kernel' if runs_other else 'kernel'}"
        return f"{nothing}: rank {sip} {'has finished its program' if report.finished else _rank(report)}"


def _closed(path: list[_Thread], onward: _Thread | None) -> Iterator[_Path]:
    """A path whose last thread waits for `onward`: for one of its own, for one of another path, or for nobody."""
    if onward is None:
        yield _Path("chain", tuple(path), None, "")
    elif onward not in path:
        yield _Path("chain", tuple(path), onward, "(see there)")
    else:
        start = path.index(onward)
        cycle = path[start:]
        first = cycle.index(min(cycle))
        yield _Path("cycle", (*cycle[first:], *cycle[:first]), None, "(back)")
        if start:
            yield _Path("chain", tuple(path[:start]), onward, "(in a cycle)")
