import pytest

from runtime.core.errors import ProtocolError
from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Grant, SilenceReport
from sip_node.pdes.lbts import Collector


def silent(
    next_ps: int, sent: tuple[int, ...] = (0, 0), received: tuple[int, ...] = (0, 0)
) -> SilenceReport:
    return SilenceReport(next_ps, sent, received)


def test_the_first_report_is_answered_by_a_call_that_repeats_the_last_lbts():
    collector = Collector(2)
    assert collector.report(1, silent(70)) == Grant(0)
    assert collector.report(0, silent(90)) == Grant(70)
    assert collector.report(1, silent(95)) == Grant(70)


def test_lbts_is_the_least_next_event_of_all():
    collector = Collector(3)
    none = (0, 0, 0)
    collector.report(0, silent(90, none, none))
    assert collector.report(1, silent(70, none, none)) is None
    assert collector.report(2, silent(80, none, none)) == Grant(70)


def test_a_newer_report_replaces_an_older_one():
    collector = Collector(2)
    collector.report(0, silent(70))
    collector.report(0, silent(75))
    assert collector.report(1, silent(90)) == Grant(75)


def test_nothing_is_granted_while_a_message_is_in_flight():
    collector = Collector(2)
    collector.report(0, silent(70, sent=(0, 1)))
    assert collector.report(1, silent(90)) is None
    assert collector.report(1, silent(65, received=(1, 0))) == Grant(65)


def test_a_message_counted_by_the_receiver_alone_does_not_hide_one_in_flight():
    """LP 0 sent to LP 1 after its report; LP 2 sent to LP 1 before its own, and that message is
    still on its way.
    """
    collector = Collector(3)
    none = (0, 0, 0)
    collector.report(0, silent(100, sent=none, received=none))
    collector.report(2, silent(100, sent=(0, 1, 0), received=none))
    assert collector.report(1, silent(100, sent=none, received=(1, 0, 0))) is None


def test_messages_in_opposite_directions_do_not_hide_each_other():
    collector = Collector(2)
    collector.report(0, silent(100, sent=(0, 1), received=(0, 0)))
    assert collector.report(1, silent(100, sent=(0, 0), received=(0, 0))) is None
    assert collector.report(1, silent(100, sent=(1, 0), received=(0, 0))) is None


def test_reports_serve_one_grant():
    collector = Collector(2)
    collector.report(0, silent(70))
    assert collector.report(1, silent(90)) == Grant(70)
    assert collector.report(0, silent(120)) == Grant(70), "a call, for LP 1 has not reported since"
    assert collector.report(1, silent(130)) == Grant(120)


def test_a_report_overtaken_by_a_grant_does_not_grant_the_same_time_again():
    collector = Collector(2)
    collector.report(0, silent(70))
    collector.report(1, silent(90))
    collector.report(1, silent(90))
    assert collector.report(0, silent(70)) is None
    assert collector.report(0, silent(85)) == Grant(85)


def test_never_is_granted_when_no_lp_has_an_event_left():
    collector = Collector(2)
    collector.report(0, silent(NEVER_PS))
    assert collector.report(1, silent(NEVER_PS)) == Grant(NEVER_PS)


@pytest.mark.parametrize("report", [silent(5, sent=(0,)), silent(5, received=(0, 0, 0))])
def test_a_report_that_does_not_cover_every_lp_is_refused(report: SilenceReport):
    with pytest.raises(
        ProtocolError, match="LP 1: a silence report without one count for each of 2 LPs"
    ):
        Collector(2).report(1, report)
