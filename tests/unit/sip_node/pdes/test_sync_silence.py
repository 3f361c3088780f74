from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Frame, PairCount
from sip_node.pdes.sync import NULL_HOPS, Sync
from tests.support.sync_frames import bounds, message, promise, two_way


class TestSilence:
    def test_a_promise_from_an_lp_that_executed_nothing_counts_one_hop_more(self):
        sync = two_way()
        sync.receive(1, promise(50, null_hops=0), 0)
        assert sync.frames(bounds((1, 50)))[0][1].null_hops == 1

    def test_the_hops_are_those_of_the_freshest_promise_that_raised_the_safe_time(self):
        sync = Sync(0, 3, {1: 10, 2: 10}, {1: 10})
        sync.receive(1, promise(50, null_hops=0), 0)
        sync.receive(2, promise(40, null_hops=1), 0)
        sync.receive(2, promise(45, null_hops=2), 0)
        assert sync.frames(bounds((1, 45)))[0][1].null_hops == 2

    def test_after_an_event_the_next_promise_has_no_hops(self):
        sync = two_way()
        sync.receive(1, promise(50, null_hops=NULL_HOPS), 0)
        sync.executed(1)
        assert sync.frames(bounds((1, 50)))[0][1].null_hops == 0

    def test_a_promise_beyond_the_hop_limit_is_withheld_and_the_lp_reports(self):
        sync = two_way()
        sync.receive(1, promise(50, null_hops=NULL_HOPS), 0)
        assert sync.frames(bounds((1, 50))) == ()
        report = sync.silence(70)
        assert report is not None
        assert (report.next_ps, report.sent, report.received) == (70, (), ())

    def test_messages_are_sent_for_every_number_of_hops(self):
        sync = two_way()
        sync.receive(1, promise(50, null_hops=NULL_HOPS), 0)
        sync.post(1, message(60))
        ((_, frame),) = sync.frames(bounds((1, 50)))
        assert len(frame.messages) == 1

    def test_counts_are_per_peer(self):
        sync = Sync(1, 3, {0: 10, 2: 10}, {0: 10, 2: 10})
        sync.receive(2, Frame((15,), NULL_HOPS, (message(15), message(16, 2))), 0)
        sync.receive(0, Frame((15,), NULL_HOPS), 0)
        sync.post(0, message(50))
        sync.frames(bounds((0, 0), (2, 0)))
        sync.frames(bounds((0, 15), (2, 15)))
        report = sync.silence(15)
        assert report is not None
        assert (report.sent, report.received) == (
            (PairCount(1, 0, 1),),
            (PairCount(2, 1, 2),),
        )

    def test_is_reported_once(self):
        sync = two_way()
        sync.frames(bounds((1, 10)))
        assert sync.silence(70) is not None
        assert sync.silence(70) is None

    def test_is_reported_again_after_a_message_came(self):
        sync = two_way()
        sync.frames(bounds((1, 10)))
        sync.silence(70)
        sync.receive(1, Frame((10,), NULL_HOPS, (message(30),)), 0)
        sync.frames(bounds((1, 10)))
        assert sync.silence(30) is not None

    def test_is_reported_again_after_a_grant(self):
        sync = two_way()
        sync.frames(bounds((1, 10)))
        sync.silence(70)
        sync.grant(40, of_run=True)
        sync.frames(bounds((1, 50)))
        assert sync.silence(70) is not None

    def test_is_not_reported_while_an_event_is_safe_to_execute(self):
        sync = two_way()
        sync.frames(bounds((1, 10)))
        assert sync.silence(9) is None

    def test_is_not_reported_while_promises_flow(self):
        sync = two_way()
        sync.executed(1)
        sync.frames(bounds((1, 10)))
        assert sync.silence(70) is None

    def test_is_reported_on_call_by_an_lp_that_withholds_nothing(self):
        sync = two_way()
        sync.executed(1)
        sync.frames(bounds((1, 10)))
        sync.call()
        assert sync.silence(70) is not None

    def test_a_report_that_was_made_on_call_does_not_claim_a_withheld_promise(self):
        sync = two_way()
        sync.executed(1)
        sync.frames(bounds((1, 10)))
        sync.call()
        report = sync.silence(70)
        assert report is not None
        assert not report.withholds
        sync.receive(1, promise(30, null_hops=NULL_HOPS), 0)
        assert sync.frames(bounds((1, 30))) == ()
        report = sync.silence(70)
        assert report is not None
        assert report.withholds

    def test_once_reported_every_change_is_reported_until_the_next_grant(self):
        sync = two_way()
        sync.frames(bounds((1, 10)))
        sync.silence(70)
        sync.executed(1)
        assert sync.frames(bounds((1, 40))) == ((1, Frame((50,), 0)),)
        assert sync.silence(80) is not None
        sync.grant(45, of_run=True)
        sync.executed(1)
        assert sync.frames(bounds((1, 60))) == ((1, Frame((70,), 0)),)
        assert sync.silence(90) is None

    def test_a_report_counts_the_grants_received(self):
        sync = two_way()
        for lbts_ps in (100, 200):
            sync.grant(lbts_ps, of_run=False)
        sync.call()
        report = sync.silence(300)
        assert report is not None
        assert report.grants == 2

    def test_is_reported_by_an_lp_to_which_nothing_can_happen_any_more(self):
        report = Sync(0, 2, {}, {1: 10}).silence(NEVER_PS)
        assert report is not None
        assert report.next_ps == NEVER_PS

    def test_the_run_ends_with_the_grant_of_never(self):
        sync = two_way()
        assert not sync.ended
        sync.grant(NEVER_PS, of_run=True)
        assert sync.ended
        assert sync.safe_ps == NEVER_PS


class TestHosts:
    """LP 1 is on a host with LP 0; LP 2 is on another one."""

    @staticmethod
    def between() -> Sync:
        return Sync(1, 3, {0: 10, 2: 30}, {0: 10, 2: 30}, hosts=(0, 0, 1))

    def test_a_report_has_the_least_eit_of_the_channels_from_other_hosts(self):
        sync = self.between()
        sync.call()
        report = sync.silence(70)
        assert report is not None
        assert report.outside_ps == 30

    def test_no_message_comes_from_another_host_where_there_is_none(self):
        sync = two_way()
        sync.call()
        report = sync.silence(70)
        assert report is not None
        assert report.outside_ps == NEVER_PS

    def test_a_grant_of_the_host_counts_for_channels_inside_of_it_alone(self):
        sync = self.between()
        sync.receive(2, promise(500), 0)
        sync.grant(400, of_run=False)
        assert (sync.safe_ps, sync.least_promise_from) == (410, 0)
        sync.receive(0, promise(900), 0)
        assert (sync.safe_ps, sync.least_promise_from) == (500, 2)

    def test_a_grant_of_the_run_counts_for_all_channels(self):
        sync = self.between()
        sync.grant(400, of_run=True)
        sync.receive(0, promise(900), 0)
        assert (sync.safe_ps, sync.least_promise_from) == (430, 2)

    def test_a_grant_of_the_host_does_not_end_the_run(self):
        sync = self.between()
        sync.grant(NEVER_PS, of_run=False)
        assert not sync.ended
