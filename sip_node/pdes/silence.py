"""The tree of silence reports: from the LPs of a host to its leader, from the leaders to LP 0.

The *leader* of a host is its first LP, and LP 0 leads the run. Reports go up, grants and calls down
the same tree, here of two hosts with four LPs each:

    LP 1, 2, 3 --- reports of LPs ---> LP 0 <--- report of the host --- LP 4
    LP 5, 6, 7 --- reports of LPs ---> LP 4

A leader merges the reports of its LPs (`Collector`). What follows depends on the least next event
of the host:

- It is before the least EIT of the channels from other hosts. Then it is LBTS of the host, and is
  granted to its LPs, for the channels between them. The LP with that event can execute it, and
  nothing passes between hosts.
- Otherwise the host waits for the others, and the leader reports to LP 0, if an LP of the host
  withholds a promise, or LP 0 has called, or the leader has reported since the last grant of the
  run. LP 0 does the same with hosts as members: nothing is outside of the run, so it always grants.

The report of a host has counts only for pairs of LPs of different hosts, so neither its length nor
the number of LPs with which an LP exchanges reports grows with the LPs of the run; LP 0 exchanges
them with one LP of each host.

Why no run hangs. Suppose that every LP is blocked and nothing is in flight, and take the LP with
the least safe time. The LP whose promise that is withholds a promise (`sync.py`), so it has
reported, and its leader has called all LPs of the host. They have reported their last state, and as
nothing is in flight the counts agree. The leader has granted nothing since, for a grant ends the
block of an LP. So it has reported to LP 0, which has called the other leaders. All of them have
reported in the same way. So LP 0 has granted to the run: a contradiction.

Why every grant raises LBTS. All reports were made after the last grant, which raised every EIT
inside the group beyond it, and the EITs from outside were greater. The next event of a blocked LP
is not before its safe time.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from runtime.core.errors import ProtocolError
from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Call, Grant, PairCount, Silence, SilenceReport

ROOT_LP = 0
"""The LP that leads the run."""

_Pair = tuple[int, int]
_Addressed = tuple[int, Silence]


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
        # Made before the last grant, which may have let the member execute since.
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


def lps_of_leaders(hosts: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Leader -> the LPs of its host, in ascending order. `hosts` has the host of every LP."""
    lps_of: dict[int, list[int]] = {}
    for lp, host in enumerate(hosts):
        lps_of.setdefault(host, []).append(lp)
    return {lps[0]: tuple(lps) for lps in lps_of.values()}


def tree_neighbours(lp: int, hosts: Sequence[int]) -> set[int]:
    """The LPs with which `lp` exchanges reports, calls and grants."""
    lps_of = lps_of_leaders(hosts)
    own = lps_of.get(lp)
    if own is None:
        return {leader for leader, lps in lps_of.items() if lp in lps}
    return {*own, *(lps_of if lp == ROOT_LP else (ROOT_LP,))} - {lp}


class SilenceTree:
    """The place of LP `lp` in the tree. No I/O: contents in, contents with their receivers out.

    A report of the LP itself comes in with the LP as sender; a grant or a call with the LP as
    receiver is for its own `Sync`.
    """

    def __init__(self, lp: int, hosts: Sequence[int]) -> None:
        self._lp, lps_of = lp, lps_of_leaders(hosts)
        self._leader = next(leader for leader, lps in lps_of.items() if lp in lps)
        self._members, self._leaders = lps_of[self._leader], tuple(lps_of)
        own, lps = {member: (member,) for member in self._members}, len(hosts)
        self._host = Collector(own, lps) if lp == self._leader else None
        self._run = Collector(lps_of, lps) if lp == ROOT_LP else None
        # Of a leader: grants of the run received, and since the last one whether LP 0 has called,
        # and what has been reported to it.
        self._grants = 0
        self._is_called = False
        self._reported: SilenceReport | None = None

    def receive(self, sender: int, content: Silence) -> list[_Addressed]:
        """Take a content of LP `sender`; returns what is to be sent, in this order.

        Raises `ProtocolError` for a content that does not come along the tree.
        """
        is_report = isinstance(content, SilenceReport)
        if is_report and self._host is None and sender == self._lp:
            return [(self._leader, content)]
        if is_report and self._host is not None and sender in self._members:
            return self._reported_by_lp(self._host, sender, content)
        if is_report and self._run is not None and sender in self._leaders:
            return self._reported_by_host(self._run, sender, content)
        if not is_report and self._host is None and sender == self._leader:
            return [(self._lp, content)]
        if not is_report and self._host is not None and self._run is None and sender == ROOT_LP:
            return self._from_root(self._host, content)
        # A grant by another LP would let this one run past what is safe.
        raise ProtocolError(
            f"LP {sender}",
            f"a {type(content).__name__} for LP {self._lp}: reports go to the first LP of a host "
            "and from there to LP 0, calls and grants come back",
        )

    def _reported_by_lp(
        self, host: Collector, member: int, report: SilenceReport
    ) -> list[_Addressed]:
        must_call = host.report(member, report)
        others = [lp for lp in self._members if lp != member]
        return (_to(others, Call()) if must_call else []) + self._settled(host)

    def _settled(self, host: Collector) -> list[_Addressed]:
        """The grant or the report that the reports of the host allow."""
        merged = host.merged()
        if merged is None:
            return []
        # No message from outside can come before this event, so no report of another host is
        # needed.
        if merged.next_ps < merged.outside_ps:
            return self._grant_to_host(host, merged.next_ps)
        # One that has reported is as good as called: LP 0 compares its counts with others.
        if not (merged.withholds or self._is_called or self._reported):
            return []
        # Nothing is outside of the run, and LP 0 grants whether or not a promise is withheld: an LP
        # that starts or ends to withhold one is no change.
        report = replace(merged, grants=self._grants, outside_ps=NEVER_PS, withholds=False)
        if report == self._reported:
            return []
        self._reported = report
        if self._run is None:
            return [(ROOT_LP, report)]
        return self._reported_by_host(self._run, self._lp, report)

    def _grant_to_host(self, host: Collector, lbts_ps: int) -> list[_Addressed]:
        host.grant()
        granted = _to(self._members, Grant(lbts_ps, of_run=False))
        if not (self._is_called or self._reported):
            return granted
        # LP 0 waits for the state after this grant, which none of the members might report.
        host.call()
        return granted + _to(self._members, Call())

    def _reported_by_host(
        self, run: Collector, leader: int, report: SilenceReport
    ) -> list[_Addressed]:
        must_call = run.report(leader, report)
        others = [each for each in self._leaders if each != leader]
        merged = run.merged()
        if merged is None:
            return self._from_run(others, Call()) if must_call else []
        run.grant()
        return self._from_run(self._leaders, Grant(merged.next_ps, of_run=True))

    def _from_run(self, leaders: Iterable[int], content: Call | Grant) -> list[_Addressed]:
        """The contents that LP 0 sends to `leaders`; it takes its own part directly."""
        assert self._host is not None, "LP 0 leads a host"
        sent = _to([each for each in leaders if each != self._lp], content)
        return sent + (self._from_root(self._host, content) if self._lp in leaders else [])

    def _from_root(self, host: Collector, content: Call | Grant) -> list[_Addressed]:
        if isinstance(content, Grant):
            host.grant()
            self._grants += 1
            self._is_called, self._reported = False, None
            return _to(self._members, content)
        self._is_called = True
        # The host may be silent already.
        return (_to(self._members, content) if host.call() else []) + self._settled(host)


def _to(lps: Iterable[int], content: Silence) -> list[_Addressed]:
    return [(lp, content) for lp in lps]
