import pytest

from runtime.core.errors import ProtocolError
from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Call, Grant, PairCount, Silence, SilenceReport
from sip_node.pdes.silence import SilenceTree, tree_neighbours

HOSTS = (0, 0, 0, 1, 1)
"""LPs 0 to 2 are on one host, with LP 0 as leader; LPs 3 and 4 on another, with LP 3."""


def report(
    next_ps: int, outside_ps: int = NEVER_PS, *, withholds: bool = True, grants: int = 0
) -> SilenceReport:
    return SilenceReport(grants, next_ps, outside_ps, withholds)


def of_host(next_ps: int, *, grants: int = 0) -> SilenceReport:
    return report(next_ps, withholds=False, grants=grants)


def calls(*lps: int) -> list[tuple[int, Silence]]:
    return [(lp, Call()) for lp in lps]


def grants(lbts_ps: int, *lps: int, of_run: bool = False) -> list[tuple[int, Silence]]:
    return [(lp, Grant(lbts_ps, of_run)) for lp in lps]


class TestNeighbours:
    def test_an_lp_reports_to_the_leader_of_its_host(self):
        assert tree_neighbours(1, HOSTS) == {0}
        assert tree_neighbours(4, HOSTS) == {3}

    def test_a_leader_has_its_lps_and_lp_0(self):
        assert tree_neighbours(3, HOSTS) == {0, 4}

    def test_lp_0_has_its_lps_and_the_leaders(self):
        assert tree_neighbours(0, HOSTS) == {1, 2, 3}

    def test_an_lp_that_is_alone_has_none(self):
        assert tree_neighbours(0, (0,)) == set()

    def test_they_do_not_grow_with_the_lps_of_a_run(self):
        """The neighbours of 1,024 LPs: 64 hosts with 16 each."""
        hosts = [lp // 16 for lp in range(1024)]
        sizes = [len(tree_neighbours(lp, hosts)) for lp in range(1024)]
        assert [sizes[lp] for lp in (0, 1, 16, 17, 1008)] == [15 + 63, 1, 16, 1, 16]


class TestLps:
    def test_the_report_of_an_lp_goes_to_its_leader(self):
        assert SilenceTree(4, HOSTS).receive(4, report(70)) == [(3, report(70))]

    @pytest.mark.parametrize("content", [Call(), Grant(5, False), Grant(5, True)])
    def test_calls_and_grants_of_the_leader_are_for_the_lp_itself(self, content: Silence):
        assert SilenceTree(4, HOSTS).receive(3, content) == [(4, content)]


class TestHostsAlone:
    def test_the_first_report_calls_the_other_lps_of_the_host(self):
        leader = SilenceTree(0, HOSTS)
        assert leader.receive(1, report(70)) == calls(0, 2)
        assert leader.receive(2, report(80)) == []

    def test_an_event_before_all_that_may_come_from_other_hosts_is_granted_in_the_host(self):
        leader = SilenceTree(3, HOSTS)
        leader.receive(4, report(70, 90))
        assert leader.receive(3, report(80, 71)) == grants(70, 3, 4)

    def test_after_a_grant_the_first_report_calls_again(self):
        leader = SilenceTree(3, HOSTS)
        leader.receive(4, report(70, 90))
        leader.receive(3, report(80, 90))
        assert leader.receive(4, report(75, 90, grants=1)) == calls(3)

    def test_a_host_that_waits_for_others_reports_to_lp_0(self):
        leader = SilenceTree(3, HOSTS)
        leader.receive(4, report(70, 60))
        assert leader.receive(3, report(80)) == [(0, of_host(70))]

    def test_an_event_at_the_time_of_a_possible_message_from_others_is_not_granted(self):
        leader = SilenceTree(3, HOSTS)
        leader.receive(4, report(70, 70))
        assert leader.receive(3, report(80)) == [(0, of_host(70))]

    def test_a_host_that_withholds_nothing_waits_for_a_call(self):
        leader = SilenceTree(3, HOSTS)
        leader.receive(4, report(70, 60, withholds=False))
        assert leader.receive(3, report(80, withholds=False)) == []
        assert leader.receive(0, Call()) == [(0, of_host(70))]

    def test_a_call_of_lp_0_is_passed_on_to_lps_that_have_not_been_called(self):
        leader = SilenceTree(3, HOSTS)
        assert leader.receive(0, Call()) == calls(3, 4)
        leader.receive(4, report(70, 60, withholds=False))
        assert leader.receive(3, report(80, withholds=False)) == [(0, of_host(70))]

    def test_the_report_of_a_host_has_the_counts_of_messages_between_hosts(self):
        leader = SilenceTree(3, HOSTS)
        inside, leaving, entering = PairCount(3, 4, 5), PairCount(4, 0, 2), PairCount(1, 3, 9)
        leader.receive(4, SilenceReport(0, 70, 60, True, (leaving,), (inside,)))
        assert leader.receive(3, SilenceReport(0, 80, 60, True, (inside,), (entering,))) == [
            (0, SilenceReport(0, 70, NEVER_PS, False, (leaving,), (entering,)))
        ]

    def test_the_same_is_not_reported_twice_but_a_change_is(self):
        leader = SilenceTree(3, HOSTS)
        leader.receive(4, report(70, 60))
        leader.receive(3, report(80, 60))
        assert leader.receive(4, report(70, 65, withholds=True)) == []
        assert leader.receive(4, report(75, 65, withholds=False)) == [(0, of_host(75))]

    def test_a_host_that_starts_or_ends_to_withhold_a_promise_does_not_report_that(self):
        """LP 0 grants either way."""
        leader = SilenceTree(3, HOSTS)
        leader.receive(3, report(80, 60, withholds=False))
        assert leader.receive(4, report(70, 60)) == [(0, of_host(70))]
        assert leader.receive(4, report(70, 60, withholds=False)) == []
        assert leader.receive(4, report(70, 60)) == []

    def test_after_a_grant_in_a_host_that_has_reported_its_lps_are_called(self):
        """LP 0 compares counts, and needs the state after the grant."""
        leader = SilenceTree(3, HOSTS)
        leader.receive(4, report(70, 60))
        leader.receive(3, report(80, 60))
        leader.receive(4, report(70, 90))
        assert leader.receive(3, report(80, 90)) == grants(70, 3, 4) + calls(3, 4)

    def test_a_grant_of_the_run_goes_to_all_lps_of_the_host(self):
        leader = SilenceTree(3, HOSTS)
        leader.receive(4, report(70, 60))
        leader.receive(3, report(80, 60))
        assert leader.receive(0, Grant(65, True)) == grants(65, 3, 4, of_run=True)
        assert leader.receive(4, report(70, 60, grants=1)) == calls(3)
        assert leader.receive(3, report(80, 60, grants=1)) == [(0, of_host(70, grants=1))]


class TestRun:
    def test_the_first_report_of_a_host_calls_the_other_hosts(self):
        root = SilenceTree(0, HOSTS)
        assert root.receive(3, report(70)) == calls(0, 1, 2)
        for lp in (0, 1):
            root.receive(lp, report(90, 60))
        assert root.receive(2, report(95, 60)) == grants(70, 3, 0, 1, 2, of_run=True)

    def test_the_report_of_its_own_host_calls_the_leaders_of_the_others(self):
        root = SilenceTree(0, HOSTS)
        for lp in (0, 1):
            root.receive(lp, report(90, 60))
        assert root.receive(2, report(95, 60)) == calls(3)
        assert root.receive(3, report(97)) == grants(90, 3, 0, 1, 2, of_run=True)

    def test_nothing_is_granted_while_a_message_between_hosts_is_in_flight(self):
        root = SilenceTree(0, HOSTS)
        for lp in (0, 1, 2):
            root.receive(lp, report(90, 60))
        sent = (PairCount(3, 2, 1),)
        assert root.receive(3, SilenceReport(0, 97, NEVER_PS, True, sent)) == []
        received = SilenceReport(0, 80, 60, True, (), sent)
        assert root.receive(2, received) == grants(80, 3, 0, 1, 2, of_run=True)

    def test_a_run_on_one_host_ends_with_the_grant_of_never_and_no_other_grant_of_the_run(self):
        root = SilenceTree(0, (0, 0))
        root.receive(0, report(90))
        assert root.receive(1, report(80)) == grants(80, 0, 1)
        root.receive(0, report(NEVER_PS, grants=1))
        assert root.receive(1, report(NEVER_PS, grants=1)) == grants(NEVER_PS, 0, 1, of_run=True)

    def test_hosts_with_one_lp_each_report_to_lp_0(self):
        root, other = SilenceTree(0, (0, 1)), SilenceTree(1, (0, 1))
        assert other.receive(1, report(70, 60)) == [(0, of_host(70))]
        assert root.receive(1, report(70)) == calls(0)
        assert root.receive(0, report(80, 60)) == grants(70, 1, 0, of_run=True)


@pytest.mark.parametrize(
    ("lp", "sender", "content"),
    [
        (1, 0, report(70)),
        (0, 4, report(70)),
        (3, 0, report(70)),
        (3, 1, report(70)),
        (0, 3, Grant(70, True)),
        (0, 1, Call()),
        (4, 0, Grant(70, True)),
        (3, 4, Grant(70, False)),
        (1, 2, Call()),
    ],
)
def test_a_content_that_does_not_come_along_the_tree_is_refused(
    lp: int, sender: int, content: Silence
):
    with pytest.raises(ProtocolError, match=f"LP {sender}: a {type(content).__name__} for LP {lp}"):
        SilenceTree(lp, HOSTS).receive(sender, content)
