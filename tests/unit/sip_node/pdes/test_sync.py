import pytest

from runtime.core.errors import CausalityError, ConfigError, InvariantError, ProtocolError
from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Frame
from sip_node.pdes.promises import ForwardingPath
from sip_node.pdes.sync import Sync
from tests.support.sync_frames import bounds, message, promise, two_way


class TestSafeTime:
    def test_starts_one_lookahead_after_zero_because_nothing_is_sent_before(self):
        assert Sync(0, 3, {1: 10, 2: 7}, {}).safe_ps == 7

    def test_is_never_without_in_channels(self):
        assert Sync(0, 2, {}, {1: 10}).safe_ps == NEVER_PS

    def test_is_the_least_promise_of_all_in_channels(self):
        sync = Sync(0, 3, {1: 10, 2: 10}, {})
        sync.receive(1, promise(50), 0)
        assert sync.safe_ps == 10
        sync.receive(2, promise(40), 0)
        assert sync.safe_ps == 40

    def test_belongs_to_the_peer_that_promised_least_and_to_the_lowest_of_several(self):
        sync = Sync(0, 4, {3: 10, 1: 10, 2: 10}, {})
        assert sync.least_promise_from == 1
        sync.receive(1, promise(50), 0)
        sync.receive(2, promise(40), 0)
        assert sync.least_promise_from == 3
        sync.receive(3, promise(45), 0)
        assert sync.least_promise_from == 2

    def test_belongs_to_no_peer_without_in_channels(self):
        assert Sync(0, 2, {}, {1: 10}).least_promise_from == -1

    def test_rises_to_lbts_and_one_lookahead_after_a_grant(self):
        sync = Sync(0, 3, {1: 10, 2: 30}, {})
        sync.grant(1000, of_run=True)
        assert sync.safe_ps == 1010

    def test_never_falls_when_a_promise_made_before_a_grant_comes_after_it(self):
        sync = two_way()
        sync.grant(1000, of_run=True)
        sync.receive(1, promise(500), 0)
        assert sync.safe_ps == 1010


class TestReceiving:
    def test_returns_the_messages_in_order(self):
        messages = (message(30), message(20, seq=2))
        assert two_way().receive(1, Frame((20,), 0, messages), 0) == messages

    def test_a_message_at_the_promise_is_in_time(self):
        sync = two_way()
        sync.receive(1, promise(50), 0)
        assert sync.receive(1, Frame((60,), 0, (message(50),)), 50) == (message(50),)

    def test_a_message_before_the_promise_names_channel_times_and_rule(self):
        sync = two_way()
        sync.receive(1, promise(50), 0)
        with pytest.raises(
            CausalityError,
            match=r"channel LP 1 -> LP 0: message at 0\.049 ns is before 0\.050 ns: no mess",
        ):
            sync.receive(1, Frame((60,), 0, (message(49),)), 0)

    def test_a_message_before_what_was_granted_is_a_causality_error(self):
        sync = two_way()
        sync.grant(100, of_run=True)
        with pytest.raises(CausalityError):
            sync.receive(1, Frame((200,), 0, (message(109),)), 0)

    def test_a_message_before_the_executed_past_is_a_causality_error(self):
        with pytest.raises(CausalityError, match="up to which its target has executed"):
            two_way().receive(1, Frame((20,), 0, (message(11),)), 12)

    def test_a_message_may_precede_the_promise_of_its_own_frame(self):
        assert two_way().receive(1, Frame((100,), 0, (message(15),)), 0)

    def test_a_promise_that_decreases_is_a_protocol_error(self):
        sync = two_way()
        sync.receive(1, promise(50), 0)
        with pytest.raises(
            ProtocolError, match=r"LP 1 -> LP 0.*0\.049 ns after a promise of 0\.050 ns"
        ):
            sync.receive(1, promise(49), 0)

    def test_a_frame_from_a_peer_without_channel_is_a_protocol_error(self):
        with pytest.raises(ProtocolError, match="LP 1: a frame for LP 0"):
            Sync(0, 2, {}, {1: 10}).receive(1, promise(50), 0)


class TestPromising:
    def test_promises_the_earliest_send_and_one_lookahead(self):
        sync = two_way()
        sync.executed(1)
        assert sync.frames(bounds((1, 25))) == ((1, Frame((35,), 0)),)

    def test_sends_no_frame_when_no_promise_grew(self):
        sync = two_way()
        sync.executed(1)
        assert sync.frames(bounds((1, 0))) == ()

    def test_never_reduces_a_promise(self):
        sync = two_way()
        sync.executed(1)
        sync.frames(bounds((1, 25)))
        sync.post(1, message(40))
        assert sync.frames(bounds((1, 5)))[0][1].promise_ps == 35

    def test_a_frame_carries_all_messages_posted_since_the_last(self):
        sync = two_way()
        for seq in (1, 2, 3):
            sync.post(1, message(30, seq))
        ((_, frame),) = sync.frames(bounds((1, 5)))
        assert [m.seq for m in frame.messages] == [1, 2, 3]
        assert sync.frames(bounds((1, 5))) == ()

    def test_a_message_before_the_promise_is_our_own_fault(self):
        sync = two_way()
        sync.executed(1)
        sync.frames(bounds((1, 25)))
        sync.post(1, message(35))
        with pytest.raises(
            CausalityError, match=r"LP 0 -> LP 1: message at 0\.034 ns is before 0\.035 ns"
        ):
            sync.post(1, message(34))

    def test_a_message_without_channel_is_our_own_fault(self):
        with pytest.raises(InvariantError, match="LP 0: a message for LP 1"):
            Sync(0, 2, {1: 10}, {}).post(1, message(50))

    def test_never_stays_never(self):
        sync = two_way()
        sync.executed(1)
        assert sync.frames(bounds((1, NEVER_PS)))[0][1].promise_ps == NEVER_PS

    @pytest.mark.parametrize("lookahead_ps", [0, -1])
    def test_a_channel_without_lookahead_is_refused(self, lookahead_ps: int):
        with pytest.raises(ConfigError, match="more than 0"):
            two_way(lookahead_ps)


class TestHorizon:
    def test_reaches_to_the_promise_made_so_that_the_peer_can_overlap(self):
        sync = two_way()
        sync.receive(1, promise(1000), 0)
        sync.executed(1)
        sync.frames(bounds((1, 90)))
        assert sync.horizon_ps(90) == 100

    def test_never_passes_the_safe_time(self):
        assert two_way().horizon_ps(500) == 10

    def test_covers_a_lookahead_of_events_where_promises_were_withheld(self):
        sync = two_way()
        sync.receive(1, promise(1000), 0)
        assert sync.horizon_ps(600) == 610

    def test_a_sharpened_promise_allows_a_longer_step(self):
        sync = two_way()
        sync.receive(1, promise(1000), 0)
        sync.executed(1)
        sync.frames(bounds((1, 700)))
        assert sync.horizon_ps(20) == 710

    def test_is_the_safe_time_where_no_peer_waits_for_promises(self):
        assert Sync(0, 2, {1: 10}, {}).horizon_ps(0) == 10


class TestForwarding:
    """LP 1 between LPs 0 and 2: what comes from 0 may be for 2, or for an LP behind 2; it takes 3
    ps through LP 1.
    """

    @staticmethod
    def between() -> Sync:
        way = (ForwardingPath(0, 3),)
        return Sync(1, 3, {0: 10, 2: 10}, {0: 10, 2: 10}, {2: (way, way)})

    def test_a_promise_depends_on_the_promise_for_one_more_remaining_hop(self):
        sync = self.between()
        sync.receive(0, Frame((40, 50, 60), 0), 0)
        assert sync.frames(bounds((0, 90), (2, 90, 90))) == (
            (0, Frame((100,), 1)),
            (2, Frame((50 + 3 + 10, 60 + 3 + 10), 1)),
        )

    def test_the_own_messages_of_an_lp_bound_its_promises_too(self):
        sync = self.between()
        sync.receive(0, Frame((40, 50, 60), 0), 0)
        assert sync.frames(bounds((0, 20), (2, 20, 55)))[1][1] == Frame((30, 65), 1)

    def test_before_the_first_frame_only_the_lookahead_is_known(self):
        sync = self.between()
        sync.executed(1)
        assert sync.frames(bounds((0, 90), (2, 90, 90)))[1][1] == Frame(
            (10 + 3 + 10, 10 + 3 + 10), 0
        )

    def test_a_grant_counts_for_forwarded_messages(self):
        sync = self.between()
        sync.grant(1000, of_run=True)
        sync.executed(1)
        assert (
            sync.frames(bounds((0, 5000), (2, 5000, 5000)))[1][1].promise_ps == 1000 + 10 + 3 + 10
        )

    def test_a_better_promise_for_forwarded_messages_is_passed_on_though_the_safe_time_stays(self):
        sync = self.between()
        sync.receive(0, Frame((40, 50, 60), 0), 0)
        sync.frames(bounds((0, 90), (2, 90, 90)))
        sync.receive(0, Frame((40, 70, 80), 0), 0)
        assert sync.safe_ps == 10
        assert sync.frames(bounds((0, 90), (2, 90, 90))) == ((2, Frame((83, 93), 1)),)

    def test_a_promise_for_forwarded_messages_never_decreases(self):
        sync = self.between()
        sync.receive(0, Frame((40, 50, 60), 0), 0)
        with pytest.raises(
            ProtocolError, match=r"promise of 0\.059 ns after a promise of 0\.060 ns"
        ):
            sync.receive(0, Frame((40, 50, 59), 0), 0)

    def test_a_promise_that_is_left_out_is_replaced_by_the_last_one_which_must_not_be_less(self):
        sync = self.between()
        sync.receive(0, Frame((40, 50, 60), 0), 0)
        with pytest.raises(
            ProtocolError, match=r"promise of 0\.055 ns after a promise of 0\.060 ns"
        ):
            sync.receive(0, Frame((40, 55), 0), 0)

    def test_a_message_is_checked_against_the_promise_for_its_remaining_hops(self):
        sync = self.between()
        sync.executed(1)
        sync.receive(0, Frame((40, 50, 60), 0), 0)
        sync.frames(bounds((0, 20), (2, 20, 55)))
        sync.post(2, message(30))
        sync.post(2, message(65), remaining_hops=1)
        with pytest.raises(
            CausalityError, match=r"LP 1 -> LP 2: message at 0\.064 ns is before 0\.065 ns"
        ):
            sync.post(2, message(64), remaining_hops=1)
