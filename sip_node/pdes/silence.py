"""The tree of silence reports: from the LPs of a host to its leader, from the leaders to LP 0.

The *leader* of a host is its first LP, and LP 0 leads the run. Reports go up, grants and calls down
the same tree, here of two hosts with four LPs each:

    LP 1, 2, 3 --- reports of LPs ---> LP 0 <--- report of the host --- LP 4
    LP 5, 6, 7 --- reports of LPs ---> LP 4

A leader merges the reports of its LPs (`lbts.py`). What follows depends on the least next event of
the host:

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

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from runtime.core.errors import ProtocolError
from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Call, Grant, Silence, SilenceReport
from sip_node.pdes.lbts import Collector

ROOT_LP = 0
"""The LP that leads the run."""

_Addressed = tuple[int, Silence]


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
        if merged.next_ps < merged.outside_ps:
            return self._grant_to_host(host, merged.next_ps)
        # One that has reported is as good as called: LP 0 compares its counts with others.
        if not (merged.withholds or self._is_called or self._reported):
            return []
        # Nothing is outside of the run.
        report = replace(merged, grants=self._grants, outside_ps=NEVER_PS)
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
        """What LP 0 sends to `leaders`; it takes its own part directly."""
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
