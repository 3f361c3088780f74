import pytest

from runtime.core.errors import InvariantError
from runtime.core.simtime import NEVER_PS
from sip_node.pdes.promises import Senders


def test_a_channel_without_senders_promises_nothing_beyond_the_event_list():
    assert Senders([1, 2]).earliest_send_ps(100) == {1: 100, 2: 100}


def test_a_message_needs_the_way_to_the_entrance():
    senders = Senders([1])
    senders.add(1, 40)
    assert senders.earliest_send_ps(100) == {1: 140}


def test_the_nearest_sender_of_each_channel_counts():
    senders = Senders([1, 2])
    senders.add(1, 40)
    senders.add(1, 25)
    senders.add(2, 90)
    assert senders.earliest_send_ps(100) == {1: 125, 2: 190}


def test_a_quiet_sender_sends_not_before_its_word_and_the_way():
    senders = Senders([1])
    senders.add(1, 40).quiet_until(3000)
    assert senders.earliest_send_ps(100) == {1: 3040}
    assert senders.earliest_send_ps(5000) == {1: 5040}


def test_one_sender_that_is_not_quiet_is_enough_to_hold_the_promise_back():
    senders = Senders([1])
    senders.add(1, 40).quiet_until(3000)
    senders.add(1, 50)
    assert senders.earliest_send_ps(100) == {1: 150}


def test_a_word_is_not_taken_back():
    senders = Senders([1])
    sender = senders.add(1, 0)
    sender.quiet_until(3000)
    sender.quiet_until(10)
    assert senders.earliest_send_ps(100) == {1: 3000}


def test_a_sender_that_is_quiet_for_ever_never_sends():
    senders = Senders([1])
    senders.add(1, 40).quiet_until(NEVER_PS)
    assert senders.earliest_send_ps(100) == {1: NEVER_PS}


def test_a_message_in_flight_binds_until_it_has_entered_the_channel():
    senders = Senders([1])
    sender = senders.add(1, 40)
    sender.departed(120)
    sender.quiet_until(3000)
    assert senders.earliest_send_ps(100) == {1: 120}
    assert senders.earliest_send_ps(130) == {1: 130}, "held up on the way"
    sender.entered(120)
    assert senders.earliest_send_ps(130) == {1: 3040}


def test_messages_may_enter_in_another_order_than_they_departed():
    senders = Senders([1])
    sender = senders.add(1, 500)
    sender.departed(120)
    sender.departed(110)
    sender.entered(110)
    assert senders.earliest_send_ps(100) == {1: 120}


def test_a_message_that_never_departed_cannot_enter():
    with pytest.raises(InvariantError, match=r"no message departed for the channel at 0\.120 ns"):
        Senders([1]).add(1, 40).entered(120)
