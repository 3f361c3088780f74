import pytest

from runtime.core.errors import ProtocolError
from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import PairCount, SilenceReport
from sip_node.pdes.silence import Collector

Counts = dict[tuple[int, int], int]


def silent(
    next_ps: int,
    sent: Counts | None = None,
    received: Counts | None = None,
    *,
    grants: int = 0,
    outside_ps: int = NEVER_PS,
    withholds: bool = True,
) -> SilenceReport:
    """A report with counts by (source, target)."""
    return SilenceReport(
        grants,
        next_ps,
        outside_ps,
        withholds,
        tuple(PairCount(*pair, messages) for pair, messages in (sent or {}).items()),
        tuple(PairCount(*pair, messages) for pair, messages in (received or {}).items()),
    )


def of_lps(lps: int, run: int | None = None) -> Collector:
    """The collector of LPs 0 to `lps` - 1, which report for themselves."""
    return Collector({lp: (lp,) for lp in range(lps)}, run or lps)


def next_of(collector: Collector) -> int | None:
    merged = collector.merged()
    return None if merged is None else merged.next_ps


def test_the_first_report_after_a_grant_requires_a_call():
    collector = of_lps(2)
    assert collector.report(1, silent(70))
    assert not collector.report(0, silent(90))
    collector.grant()
    assert collector.report(1, silent(95, grants=1))


def test_members_that_have_been_called_are_not_called_again():
    collector = of_lps(2)
    assert collector.call()
    assert not collector.report(1, silent(70))
    assert not collector.call()


def test_the_next_event_of_a_group_is_the_least_of_all():
    collector = of_lps(3)
    collector.report(0, silent(90))
    collector.report(1, silent(70))
    assert collector.merged() is None
    collector.report(2, silent(80))
    assert next_of(collector) == 70


def test_the_outside_of_a_group_is_the_least_of_all():
    collector = of_lps(2)
    collector.report(0, silent(90, outside_ps=60))
    collector.report(1, silent(70, outside_ps=50))
    merged = collector.merged()
    assert merged is not None
    assert merged.outside_ps == 50


@pytest.mark.parametrize("withholds", [(False, False), (True, False), (False, True)])
def test_a_group_withholds_a_promise_if_a_member_does(withholds: tuple[bool, bool]):
    collector = of_lps(2)
    for lp in range(2):
        collector.report(lp, silent(90, withholds=withholds[lp]))
    merged = collector.merged()
    assert merged is not None
    assert merged.withholds == any(withholds)


def test_a_newer_report_replaces_an_older_one():
    collector = of_lps(2)
    collector.report(0, silent(70))
    collector.report(0, silent(75))
    collector.report(1, silent(90))
    assert next_of(collector) == 75


def test_there_is_no_report_of_a_group_while_a_message_is_in_flight():
    collector = of_lps(2)
    collector.report(0, silent(70, sent={(0, 1): 1}))
    collector.report(1, silent(90))
    assert collector.merged() is None
    collector.report(1, silent(65, received={(0, 1): 1}))
    assert next_of(collector) == 65


def test_a_message_counted_by_the_receiver_alone_does_not_hide_one_in_flight():
    """LP 0 sent to LP 1 after its report; LP 2 sent to LP 1 before its own, and that message is
    still on its way.
    """
    collector = of_lps(3)
    collector.report(0, silent(100))
    collector.report(2, silent(100, sent={(2, 1): 1}))
    collector.report(1, silent(100, received={(0, 1): 1}))
    assert collector.merged() is None


def test_messages_in_opposite_directions_do_not_hide_each_other():
    collector = of_lps(2)
    collector.report(0, silent(100, sent={(0, 1): 1}))
    for sent in ({}, {(1, 0): 1}):
        collector.report(1, silent(100, sent=sent))
        assert collector.merged() is None


def test_counts_between_members_are_compared_and_the_others_are_passed_on():
    collector = of_lps(2, run=4)
    collector.report(0, silent(70, {(0, 1): 5, (0, 3): 2}, {(2, 0): 7}))
    collector.report(1, silent(80, {(1, 2): 4}, {(0, 1): 5}))
    assert collector.merged() == silent(70, {(0, 3): 2, (1, 2): 4}, {(2, 0): 7})


def test_counts_of_groups_are_compared_for_every_pair_of_lps():
    collector = Collector({0: (0, 1), 2: (2, 3)}, 4)
    collector.report(0, silent(70, sent={(0, 2): 1, (1, 2): 1}))
    collector.report(2, silent(80, received={(0, 2): 2}))
    assert collector.merged() is None
    collector.report(2, silent(80, received={(0, 2): 1, (1, 2): 1}))
    assert collector.merged() == silent(70)


def test_reports_serve_one_grant():
    collector = of_lps(2)
    collector.report(0, silent(70))
    collector.report(1, silent(90))
    collector.grant()
    collector.report(0, silent(120, grants=1))
    assert collector.merged() is None
    collector.report(1, silent(130, grants=1))
    assert next_of(collector) == 120


def test_a_report_overtaken_by_a_grant_is_obsolete():
    collector = of_lps(2)
    collector.report(0, silent(70))
    collector.report(1, silent(90))
    collector.grant()
    assert not collector.report(1, silent(90))
    assert collector.report(0, silent(85, grants=1))
    assert collector.merged() is None


def test_never_is_the_next_event_when_no_lp_has_one():
    collector = of_lps(2)
    collector.report(0, silent(NEVER_PS))
    collector.report(1, silent(NEVER_PS))
    assert next_of(collector) == NEVER_PS


@pytest.mark.parametrize(
    "report",
    [
        silent(5, sent={(2, 3): 1}),
        silent(5, sent={(1, 0): 1}),
        silent(5, received={(1, 2): 1}),
        silent(5, received={(0, 1): 1}),
        silent(5, sent={(1, 4): 1}),
        SilenceReport(0, 5, 5, True, (PairCount(1, 2, 1), PairCount(1, 2, 2))),
        silent(5, grants=1),
    ],
    ids=[
        "sent by another LP",
        "sent to an LP of the member",
        "received by another LP",
        "received from an LP of the member",
        "an LP that does not exist",
        "a pair that is counted twice",
        "more grants than there were",
    ],
)
def test_a_report_with_a_count_that_its_member_cannot_have_is_refused(report: SilenceReport):
    collector = Collector({0: (0, 1), 2: (2, 3)}, 4)
    with pytest.raises(ProtocolError, match="LP 0: a silence report with a count that it cannot"):
        collector.report(0, report)
