"""Diagnoses sends and receives that never meet: their ranks, calls, tags and lines, and the cycle.

At the end of a run without events, every open transfer waits for the other end of its message. That
end was never called, or it is enqueued on its rank behind an operation that waits, too. So each
open transfer depends on one other, or on a rank that calls nothing more:

    rank 0: send to 1   depends on   rank 1: recv from 0, enqueued behind   rank 1: send to 0
"""

from collections.abc import Iterator, Sequence

from runtime.core.errors import TransferMismatchError
from runtime.wire.reports import OpenTransfer, SipReport

_TOGETHER = "post both with batch_isend_irecv, or with isend and irecv before the first wait"
_SENDS = f"each of these ranks sends before its receive is posted: {_TOGETHER}"
_RECEIVES = f"each of these ranks waits for a receive before it sends: {_TOGETHER}"
_BOTH = f"each of these operations is called behind another one of the cycle: {_TOGETHER}"
_THROUGH = " or launch that uses a received tensor"
_OVERLAP = (
    ", and receive into other elements than those sent: operations on the same elements of a "
    "tensor run in the order of the calls"
)


class OpenTransfers:
    """The open transfers of the reports of all SIPs, in ascending order of the SIPs."""

    def __init__(self, reports: Sequence[SipReport]) -> None:
        self._reports = {report.sip: report for report in reports}
        self._all = [transfer for report in reports for transfer in report.transfers]
        self._ends = {(each.sip, each.call): each for each in self._all}

    def mismatch(self) -> TransferMismatchError | None:
        """A message whose two ends are both posted, on different PEs; they are the cause."""
        for sent in self._all:
            received = self._other_end(sent)
            if sent.sends and received is not None and not sent.behind and not received.behind:
                ends = (sent, received)
                calls = [f"{each.call}: {each.elements}, at {each.line}" for each in ends]
                return TransferMismatchError(sent.sip, calls[0], received.sip, calls[1])
        return None

    def lines(self) -> Iterator[str]:
        """The cycle with a hint, if there is one, then a line for every posted transfer."""
        cycle = self._cycle()
        if cycle:
            steps = (f"rank {each.sip} {each}" for each in cycle)
            yield f"cycle: {' -> '.join(steps)} -> (back)"
            sends = sum(each.sends for each in cycle)
            hint = _SENDS if sends == len(cycle) else _BOTH if sends else _RECEIVES
            overlap = any(other and other.overlaps for other in map(self._other_end, cycle))
            through = any(other and other.through for other in map(self._other_end, cycle))
            yield f"hint: {hint}{_THROUGH * through}{_OVERLAP * overlap}"
        for transfer in self._all:
            if not transfer.behind:
                called = f"{transfer}, tag {transfer.tag}, {transfer.elements}, at {transfer.line}"
                yield f"rank {transfer.sip}: {called}: {self._reason(transfer)}"

    def _reason(self, transfer: OpenTransfer) -> str:
        """Why the other end of a posted transfer is not posted."""
        peer, other = transfer.peer, self._other_end(transfer)
        if other is not None:
            behind = self._ends.get((peer, other.behind))
            before = other.behind if behind is None else f"its {behind} at {behind.line}"
            before = f"{other.through} and {before}" if other.through else before
            return f"rank {peer} calls {other.function} at {other.line}, behind {before}"
        missing = "receive" if transfer.sends else "send"
        report = self._reports.get(peer)
        if report is None:
            return f"rank {peer} is not part of the run"
        tags = self._other_tags(transfer)
        if transfer.tag in tags:
            own, others = _group(transfer), ", ".join(self._groups(transfer))
            return f"rank {peer} calls {missing}s in {others} that wait, not in {own}"
        if tags:
            plural = "s" if len(tags) > 1 else ""
            numbers = ", ".join(map(str, tags))
            return f"rank {peer} calls {missing}s that wait with tag{plural} {numbers} instead"
        state = "has finished its program" if report.finished else f"waits for {report.waiting_for}"
        return f"rank {peer} calls no {missing} for it and {state}"

    def _other_tags(self, transfer: OpenTransfer) -> list[int]:
        """The tags of the peer's ends that would match a transfer but for the tag or the group."""
        return sorted({each.tag for each in self._unmatched(transfer)})

    def _groups(self, transfer: OpenTransfer) -> list[str]:
        """The groups of the peer's ends that would match a transfer but for the group."""
        unmatched = self._unmatched(transfer)
        return sorted({_group(each) for each in unmatched if each.tag == transfer.tag})

    def _unmatched(self, transfer: OpenTransfer) -> list[OpenTransfer]:
        report = self._reports.get(transfer.peer)
        return [
            each
            for each in (report.transfers if report else ())
            if each.peer == transfer.sip
            and each.sends != transfer.sends
            and self._other_end(each) is None
        ]

    def _cycle(self) -> list[OpenTransfer]:
        """The first cycle of dependencies between posted transfers."""
        # Each transfer depends on one other at most, so a walk either ends or comes back to its
        # path.
        for start in self._all:
            path: list[OpenTransfer] = []
            transfer: OpenTransfer | None = None if start.behind else start
            while transfer is not None and transfer not in path:
                path.append(transfer)
                transfer = self._dependency(transfer)
            if transfer is not None:
                return path[path.index(transfer) :]
        return []

    def _dependency(self, transfer: OpenTransfer) -> OpenTransfer | None:
        """The posted transfer that holds up the other end of a posted one."""
        other = self._other_end(transfer)
        if other is not None:
            return self._ends.get((transfer.peer, other.behind))
        # Not called yet: the program of the peer waits, for one of its transfers if it has any.
        # With another tag it is called, and no order of the calls would help.
        report = self._reports.get(transfer.peer)
        if report is None or self._other_tags(transfer):
            return None
        return next((each for each in report.transfers if not each.behind), None)

    def _other_end(self, transfer: OpenTransfer) -> OpenTransfer | None:
        return self._ends.get((transfer.peer, transfer.call))


def _group(transfer: OpenTransfer) -> str:
    """The title of the process group, with which the id of a message begins."""
    return transfer.call.rpartition(" rank ")[0]
