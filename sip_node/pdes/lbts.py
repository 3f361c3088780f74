"""Lower bound on time stamp (LBTS): computed from the reports of LPs that are silent."""

from runtime.core.errors import ProtocolError
from runtime.wire.frames import Grant, SilenceReport

COLLECTOR_LP = 0
"""The LP that runs the collector for all."""


class Collector:
    """Collects the reports of `lps` LPs; LP 0 runs it. No I/O: reports in, grants for all LPs out.

    When every LP has reported, and for every ordered pair (i, j) the number of messages which i has
    sent to j equals the number which j has received from i, LBTS is the least next event of the
    reports.

    Why this is a lower bound, though the reports were made at different moments (Mattern 1993).
    Call all that an LP does before its report its past. Channels are FIFO, so equal counts on a
    channel mean that the very messages sent in the past were received in the past: none is in
    flight across the cut, and none was received before it was sent. Now suppose that an LP
    executes, after its report, an event before LBTS; take the first such event. Its LP had no event
    before LBTS when it reported, so a message from another LP caused it. That message was not sent
    in the past, for then it would have been received in the past. So an event after the sender's
    report sent it, earlier by at least one lookahead, and that event came first. Contradiction.
    Hence a report that a promise overtakes stays valid: an LP that has continued since has executed
    nothing before the next event that it reported.

    The counts must agree per pair. In a total, a message that i sent after its report and that j
    has counted as received hides a message that k sent before its report and that is still in
    flight: the sums agree, and the message in flight may bring an event before the "bound".
    """

    def __init__(self, lps: int) -> None:
        self._lps = lps
        self._lbts_ps = 0
        self._reports: dict[int, SilenceReport] = {}

    def report(self, lp: int, report: SilenceReport) -> Grant | None:
        """Take the newest report of `lp`; returns a grant for all LPs, if one is due.

        The first report after a grant is answered by the last LBTS again: a call to the others,
        which may be blocked without withholding anything. A higher LBTS consumes the reports; never
        means that the run has ended. Raises `ProtocolError` for counts that do not cover every LP.
        """
        if lp >= self._lps or not len(report.sent) == len(report.received) == self._lps:
            raise ProtocolError(
                f"LP {lp}", f"a silence report without one count for each of {self._lps} LPs"
            )
        # One call after each grant is enough: every blocked LP answers it.
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
        # Also between LPs without a channel, where both counts stay 0.
        reports = self._reports
        return all(
            sender.sent[j] == reports[j].received[i]
            for i, sender in reports.items()
            for j in range(self._lps)
        )
