"""Lower bound on time stamp (LBTS): from the reports of silent LPs to the time from which all can
go on.
"""

from runtime.core.errors import ProtocolError
from runtime.wire.frames import Grant, SilenceReport


class Collector:
    """Collects the reports of `lps` LPs; LP 0 runs it. No I/O: every report in, at most one grant
    out, for all LPs.

    When every LP has reported, and for every ordered pair the messages that i has sent to j are as
    many as j has received from i, LBTS is the least next event of the reports.

    Why this is a lower bound, though the reports were made at different moments (Mattern 1993).
    Call what an LP does up to its report the past. Channels are FIFO, so equal counts on a channel
    mean that the very messages sent in the past were received in the past: none is in flight across
    the cut, and none was received before it was sent. Now suppose that some LP executes, after its
    report, an event before LBTS; take the first such event. Its LP had no event before LBTS when it
    reported, so a message from outside caused it. That message was not sent in the past, for then
    it would have been received in the past. So an event after the sender's report sent it, earlier
    still by one lookahead, and that event came first. Contradiction. Hence a report overtaken by a
    promise stays good: an LP that moved on since has executed nothing before the next event it
    reported.

    The counts must agree per pair. In a total, a message that i sent after its report and that j
    has counted as received hides one that k sent before its report and that is still in flight: the
    sums agree, and the one in flight may bring an event before the "bound".
    """

    def __init__(self, lps: int) -> None:
        self._lps = lps
        self._lbts_ps = 0
        self._reports: dict[int, SilenceReport] = {}

    def report(self, lp: int, report: SilenceReport) -> Grant | None:
        """Take the newest report of `lp`; returns what all LPs are to be told, if anything.

        The first report after a grant is answered by the last LBTS again: a call to the others, who
        may be blocked without withholding anything. A higher LBTS consumes the reports; never means
        that the run has ended. Raises `ProtocolError` for counts that do not cover every LP.
        """
        if lp >= self._lps or not len(report.sent) == len(report.received) == self._lps:
            raise ProtocolError(
                f"LP {lp}", f"a silence report without one count for each of {self._lps} LPs"
            )
        first = not self._reports
        self._reports[lp] = report
        if len(self._reports) == self._lps and self._channels_are_empty():
            lbts_ps = min(report.next_ps for report in self._reports.values())
            # A report made before the last grant arrived may repeat its LBTS; the newer one is on
            # its way.
            if lbts_ps > self._lbts_ps:
                self._lbts_ps = lbts_ps
                self._reports.clear()
                return Grant(lbts_ps)
        return Grant(self._lbts_ps) if first else None

    def _channels_are_empty(self) -> bool:
        reports = self._reports
        return all(
            sender.sent[j] == reports[j].received[i]
            for i, sender in reports.items()
            for j in range(self._lps)
        )
