"""Who waits for whom when nothing can happen any more: from the reports of all SIPs to the cycles and chains of waits.

A PE whose kernel waits depends on the peer of that direction. A PE without a kernel can be moved only by its rank, which
depends on the kernels that it waits for, or has finished its program. So everybody depends on somebody, round in a cycle or
along a chain to a rank that has finished.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from runtime.errors import IpcqDeadlock
from runtime.places import Place
from runtime.wire.messages import QueuePointers, SipReport


def deadlock(reports: Sequence[SipReport]) -> IpcqDeadlock:
    """The error of a run that has ended although a rank has not finished; `reports` are those of all SIPs."""
    ordered = sorted(reports, key=lambda report: report.sip)
    queues = [queue for report in ordered for queue in report.queues]
    return IpcqDeadlock(
        max(report.time_ps for report in ordered),
        tuple(str(pe) for report in ordered for pe in report.blocked),
        tuple(f"rank {report.sip}: {_rank(report)}" for report in ordered if not report.finished),
        (*WaitForGraph(ordered).lines(), *_never_received(queues)),
        tuple(map(str, queues)),
    )


def _rank(report: SipReport) -> str:
    return f"waits for {report.waiting_for or 'something that was never asked for'}"


def _never_received(queues: Sequence[QueuePointers]) -> Iterator[str]:
    """What came and is not wanted: the trace of a direction or a number of messages that do not match."""
    alike = _Alike()
    for queue in queues:
        full = queue.peer_head - queue.tail
        if full:
            place, peer = Place(queue.sip, queue.cube, queue.pe), Place(*queue.peer)
            slots = f"{full} slot{'s' if full > 1 else ''}"
            text = f"never received: {slots} from {peer} in {queue.direction} of {place}"
            alike.add(text, (place, peer), (full, queue.direction))
    yield from alike.lines()


class _Alike:
    """Lines, of which those that differ in cube and PE alone are told once."""

    def __init__(self) -> None:
        self._lines: dict[tuple[object, ...], tuple[str, int]] = {}

    def add(self, text: str, places: Sequence[Place], rest: object) -> None:
        """A line about `places`; two lines are alike if their SIPs and `rest` are, and each keeps to one cube and PE."""
        same = len({(place.cube, place.pe) for place in places}) == 1
        shape = (tuple(place.sip for place in places) if same else tuple(places), rest)
        first, count = self._lines.get(shape, (text, 0))
        self._lines[shape] = first, count + 1

    def lines(self) -> Iterator[str]:
        """The first of each kind, and how many more there are."""
        for text, count in self._lines.values():
            more = count - 1
            yield f"{text}; the same on {more} other {'PE' if more == 1 else 'PEs'}" if more else text


class _Path(NamedTuple):
    """Places, each of which waits for the next one; the last for `onward`, about which there is a `remark`, or for nobody."""

    kind: str
    places: tuple[Place, ...]
    onward: Place | None
    remark: str


class WaitForGraph:
    """The wait-for graph of all PEs that wait, and of the ranks behind those that do not."""

    def __init__(self, reports: Sequence[SipReport]) -> None:
        self._reports = {report.sip: report for report in reports}
        self._blocked = {Place(pe.sip, pe.cube, pe.pe): pe for report in reports for pe in report.blocked}
        # The PE whose kernel the rank of a SIP waits for before it does anything else: the first of several.
        self._held_up_by = {place.sip: place for place in sorted(self._blocked, reverse=True)}
        self._peers: dict[Place, list[Place]] = {}
        for queue in (queue for report in reports for queue in report.queues):
            self._peers.setdefault(Place(queue.sip, queue.cube, queue.pe), []).append(Place(*queue.peer))

    def lines(self) -> tuple[str, ...]:
        """A line for every cycle, then for every chain; those that differ in cube and PE alone share one."""
        alike = _Alike()
        for path in sorted(self._paths(), key=lambda path: (path.kind != "cycle", path.places)):
            doing = tuple(map(self._doing, path.places))
            labels = [f"{place} {does}" for place, does in zip(path.places, doing, strict=True)]
            onward = [f"{path.onward or ''} {path.remark}".strip()] if path.remark else []
            places = path.places if path.onward is None else (*path.places, path.onward)
            alike.add(f"{path.kind}: {' -> '.join(labels + onward)}", places, (path.kind, doing))
        return tuple(alike.lines())

    def _paths(self) -> Iterator[_Path]:
        """Follow the waits from every PE that waits, those first for which nobody does; each place is passed once."""
        following = {place: self._following(place) for place in self._blocked}
        awaited = set(following.values())
        passed: set[Place] = set()
        for start in sorted(following, key=lambda place: (place in awaited, place)):
            path: list[Place] = []
            place: Place | None = start
            while place is not None and place not in passed:
                passed.add(place)
                path.append(place)
                place = self._following(place)
            if path:
                yield from _closed(path, place)

    def _following(self, place: Place) -> Place | None:
        """Whom a place waits for; of several, one that waits itself, since all of them do not come."""
        blocked = self._blocked.get(place)
        if blocked is None:
            return self._held_up_by.get(place.sip)
        candidates = self._peers.get(place, []) if blocked.peer is None else [Place(*blocked.peer)]
        return min(candidates, key=lambda peer: (not self._waits(peer), peer), default=None)

    def _waits(self, place: Place) -> bool:
        return place in self._blocked or place.sip in self._held_up_by

    def _doing(self, place: Place) -> str:
        blocked = self._blocked.get(place)
        if blocked is not None:
            return f"{blocked.operation} {blocked.direction}"
        report = self._reports.get(place.sip)
        if report is None:
            return "is not part of the run"
        if report.finished:
            return f"runs no kernel: rank {place.sip} has finished its program"
        return f"runs no kernel: rank {place.sip} {_rank(report)}"


def _closed(path: list[Place], onward: Place | None) -> Iterator[_Path]:
    """A path whose last place waits for `onward`: for one of its own, for one of another path, or for nobody."""
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
