"""Diagnoses deadlocks: the text of the error, with the wait-for cycle, PEs, directions and times.

A run that has no event left although a rank has not finished is in a deadlock. Its error lists
the cycles and chains of the wait-for graph, messages that were never received, every blocked PE,
every unfinished rank, and the pointers of the queues. Lines that differ in cube and PE alone are
shown once with the number of the others, because a collective usually blocks in all cubes alike.
"""

from collections.abc import Iterator, Sequence

from runtime.ccl.call_signature import call_id
from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import CollectiveMismatchError, IpcqDeadlock, NetworkDeadlock
from runtime.diagnosis.buffer_cycle import network_deadlock
from runtime.diagnosis.open_transfers import OpenTransfers
from runtime.diagnosis.wait_for_graph import PathEnd, PeThread, WaitForGraph, WaitPath
from runtime.wire.reports import BlockedPe, QueuePointers, SipReport

_REMARKS = {
    PathEnd.CYCLE: "(back)",
    PathEnd.NO_DEPENDENCY: "",
    PathEnd.JOINS_CYCLE: "(in a cycle)",
    PathEnd.JOINS_PATH: "(see there)",
}


def deadlock(
    reports: Sequence[SipReport],
) -> IpcqDeadlock | CollectiveMismatchError | NetworkDeadlock:
    """The error of a run in which no event is left; `reports` are those of all SIPs.

    Ranks that wait in different collective calls at the same position of a group's sequence are a
    mismatch, which is the cause of everything else and therefore reported alone. So is a cycle of
    full buffers in the network.
    """
    ordered = sorted(reports, key=lambda report: report.sip)
    transfers = OpenTransfers(ordered)
    # Most fundamental first: nothing else in a run makes sense once its network stands still.
    cause = network_deadlock(ordered) or _mismatch(ordered) or transfers.mismatch()
    if cause is not None:
        return cause
    queues = [queue for report in ordered for queue in report.queues]
    unfinished = [report for report in ordered if not report.finished]
    return IpcqDeadlock(
        time_ps=max(report.time_ps for report in ordered),
        pes=tuple(str(pe) for report in ordered for pe in report.blocked),
        ranks=tuple(f"rank {report.sip}: {_rank_state(report)}" for report in unfinished),
        waits=(
            *transfers.lines(),
            *_path_lines(WaitForGraph(ordered)),
            *_never_received(queues),
        ),
        queues=tuple(map(str, queues)),
    )


def _mismatch(reports: Sequence[SipReport]) -> CollectiveMismatchError | None:
    # The first blocked PE of every position in a group's sequence of calls.
    first_at: dict[str, BlockedPe] = {}
    for pe in (pe for report in reports for pe in report.blocked if pe.call):
        first = first_at.setdefault(call_id(pe.call), pe)
        if first.call != pe.call:
            return CollectiveMismatchError(first.sip, first.call, pe.sip, pe.call)
    return None


def _rank_state(report: SipReport) -> str:
    return f"waits for {report.waiting_for or 'an operation without a name'}"


def _path_lines(graph: WaitForGraph) -> Iterator[str]:
    """`cycle: sip 0 cube 0 pe 0 recv W -> sip 1 cube 0 pe 0 recv W -> (back)`."""
    similar = _SimilarLines()
    for path in graph.paths():
        states = tuple(_thread_state(graph, thread) for thread in path.threads)
        kind = "cycle" if path.is_cycle else "chain"
        text = f"{kind}: {' -> '.join(_steps(path, states))}"
        threads = path.threads if path.joined is None else (*path.threads, path.joined)
        similar.add(text, [thread.coordinates for thread in threads], (kind, states))
    yield from similar.lines()


def _steps(path: WaitPath, states: Sequence[str]) -> Iterator[str]:
    for thread, state in zip(path.threads, states, strict=True):
        yield f"{thread} {state}"
    end = f"{path.joined or ''} {_REMARKS[path.end]}".strip()
    if end:
        yield end


def _thread_state(graph: WaitForGraph, thread: PeThread) -> str:
    """The operation in which a thread is blocked, or the reason why it runs no kernel."""
    blocked, sip = graph.blocked.get(thread), thread.coordinates.sip
    if blocked is not None:
        return f"{blocked.operation} {blocked.direction}"
    report = graph.reports.get(sip)
    if report is None:
        return "is not part of the run"
    runs_other = thread._replace(collective=not thread.collective) in graph.blocked
    state = "has finished its program" if report.finished else _rank_state(report)
    return f"runs no {'other kernel' if runs_other else 'kernel'}: rank {sip} {state}"


def _never_received(queues: Sequence[QueuePointers]) -> Iterator[str]:
    """Slots that arrived and stay full: a sign of a wrong direction or number of messages."""
    similar = _SimilarLines()
    for queue in queues:
        # Slots that arrived minus slots that were received.
        full = queue.peer_head - queue.tail
        if full:
            receiver = PeCoordinates(queue.sip, queue.cube, queue.pe)
            sender = PeCoordinates(*queue.peer)
            slots = f"{full} slot{'s' if full > 1 else ''}"
            ring = f"{queue.table} {queue.direction} of {receiver}"
            text = f"never received: {slots} from {sender} in {ring}"
            similar.add(text, (receiver, sender), (full, queue.table, queue.direction))
    yield from similar.lines()


class _SimilarLines:
    """Merges lines that differ in cube and PE alone."""

    def __init__(self) -> None:
        self._lines: dict[tuple[object, ...], tuple[str, int]] = {}

    def add(self, text: str, coordinates: Sequence[PeCoordinates], rest: object) -> None:
        """Add a line that names the PEs at `coordinates`.

        Two lines are similar if their SIPs and `rest` are equal and each names one cube and PE
        only: between different PEs the geometry matters, and every line is kept.
        """
        one_pe = len({(each.cube, each.pe) for each in coordinates}) == 1
        named = tuple(each.sip for each in coordinates) if one_pe else tuple(coordinates)
        first, count = self._lines.get((named, rest), (text, 0))
        self._lines[named, rest] = first, count + 1

    def lines(self) -> Iterator[str]:
        """The first line of each group, with the number of the others."""
        for text, count in self._lines.values():
            others = count - 1
            noun = "PE" if others == 1 else "PEs"
            yield f"{text}; the same on {others} other {noun}" if others else text
