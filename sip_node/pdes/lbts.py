"""Lower bound on time stamp (LBTS) of a group of LPs, from the reports of its silent members."""

from collections.abc import Iterable, Mapping, Sequence

from runtime.core.errors import ProtocolError
from runtime.wire.frames import PairCount, SilenceReport

_Pair = tuple[int, int]


class Collector:
    """Collects the reports of the members of a group: the LPs of a host, or the hosts of a run.

    `lps_of` gives the LPs that the report of each member covers, by the LP which sends it. There is
    no I/O here: reports come in, and `merged` is the report of the group.

    It exists when every member has reported, and for every ordered pair (i, j) of LPs inside the
    group the number of messages which i has sent to j equals the number which j has received from
    i. Then LBTS of the group, the lesser of `next_ps` and `outside_ps`, is a time before which none
    of its LPs executes an event any more.

    Why this is a lower bound, though the reports were made at different moments (Mattern 1993).
    Call all that an LP does before its report its past. Channels are FIFO, so equal counts on a
    channel mean that the very messages sent in the past were received in the past: none is in
    flight across the cut, and none was received before it was sent. Now suppose that an LP of the
    group executes, after its report, an event before LBTS; take the first such event. Its LP had no
    event before LBTS when it reported, so a message that came later caused it. If the message is
    from outside, it is not before the EIT of its channel at the report, so not before LBTS. If it
    is from inside, it was not sent in the past, for then it would have been received in the past.
    So an event after the sender's report sent it, earlier by at least one lookahead, and that event
    came first. Contradiction. Hence a report that a promise overtakes stays valid: an LP that has
    continued since has executed nothing before the next event that it reported.

    Merging keeps that: the past of a group is that of its members. Equal counts of messages between
    groups and inside of each are equal counts for every pair of LPs.

    The counts must agree per pair. In a total, a message that i sent after its report and that j
    has counted as received hides a message that k sent before its report and that is still in
    flight: the sums agree, and the message in flight may bring an event before the "bound".
    """

    def __init__(self, lps_of: Mapping[int, Sequence[int]], lps: int) -> None:
        self._lps, self._lps_of = lps, {member: set(own) for member, own in lps_of.items()}
        self._inside = {lp for own in lps_of.values() for lp in own}
        self._grants = 0
        self._is_called = False
        self._reports: dict[int, SilenceReport] = {}

    def report(self, member: int, report: SilenceReport) -> bool:
        """Take the newest report of `member`; returns whether the other members must be called.

        One call after each grant is enough, since a member that is called, or that has reported,
        reports every change. A report made before the last grant came to its member is obsolete: a
        newer one follows. Raises `ProtocolError` for counts that the member cannot have.
        """
        self._check(member, report)
        if report.grants < self._grants:
            return False
        self._reports[member] = report
        return self.call()

    def call(self) -> bool:
        """The members are called; returns whether they have not been since the last grant."""
        before, self._is_called = self._is_called, True
        return not before

    def grant(self) -> None:
        """A grant is sent to all members: it consumes their reports."""
        self._grants += 1
        self._is_called = False
        self._reports.clear()

    def merged(self) -> SilenceReport | None:
        """The report of the group; None while one is missing, or a message inside in flight.

        Its counts are those of messages from and to LPs outside. `grants` is 0: the grants that the
        group has received are not known here.
        """
        reports = self._reports.values()
        if len(reports) < len(self._lps_of):
            return None
        sent = _counts(report.sent for report in reports)
        received = _counts(report.received for report in reports)
        # A pair without a message is absent on both sides.
        if self._between(sent) != self._between(received):
            return None
        return SilenceReport(
            grants=0,
            next_ps=min(report.next_ps for report in reports),
            outside_ps=min(report.outside_ps for report in reports),
            withholds=any(report.withholds for report in reports),
            sent=self._crossing(sent),
            received=self._crossing(received),
        )

    def _between(self, counts: Mapping[_Pair, int]) -> dict[_Pair, int]:
        return {pair: count for pair, count in counts.items() if self._inside.issuperset(pair)}

    def _crossing(self, counts: Mapping[_Pair, int]) -> tuple[PairCount, ...]:
        return tuple(
            PairCount(*pair, messages=messages)
            for pair, messages in sorted(counts.items())
            if not self._inside.issuperset(pair)
        )

    def _check(self, member: int, report: SilenceReport) -> None:
        own, counts = self._lps_of[member], (*report.sent, *report.received)
        sources = {count.source for count in report.sent}
        sources |= {count.target for count in report.received}
        others = {count.target for count in report.sent}
        others |= {count.source for count in report.received}
        pairs = {(count.source, count.target) for count in counts}
        if (
            len(pairs) < len(counts)
            or not sources <= own
            or own & others
            or max(others, default=0) >= self._lps
            or report.grants > self._grants
        ):
            raise ProtocolError(
                f"LP {member}",
                "a silence report with a count that it cannot have: messages are counted once for "
                f"each LP of {min(own)} to {max(own)} and each other of the {self._lps} LPs, "
                f"and it has received {self._grants} grants at most",
            )


def _counts(reported: Iterable[Sequence[PairCount]]) -> dict[_Pair, int]:
    return {(count.source, count.target): count.messages for counts in reported for count in counts}
