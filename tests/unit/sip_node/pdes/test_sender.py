from itertools import product

import pytest

from runtime.core.errors import InvariantError
from runtime.core.simtime import NEVER_PS
from sip_node.pdes.sender import Sender
from tests.support.extreme_times import EXTREME_PS


def test_a_message_needs_the_path_to_the_entrance():
    assert Sender(40).earliest_send_ps(100) == 140


def test_a_quiet_sender_sends_after_the_declared_time_and_the_path():
    sender = Sender(40)
    sender.quiet_until(3000)
    assert sender.earliest_send_ps(100) == 3040
    assert sender.earliest_send_ps(5000) == 5040


def test_a_declared_time_never_decreases():
    sender = Sender(0)
    sender.quiet_until(3000)
    sender.quiet_until(10)
    assert sender.earliest_send_ps(100) == 3000


def test_a_sender_that_stays_quiet_never_sends():
    sender = Sender(40)
    sender.quiet_until(NEVER_PS)
    assert sender.earliest_send_ps(100) == NEVER_PS


def test_bounds_of_extreme_times_stay_in_range() -> None:
    for path_ps, quiet_ps, base_ps, entrance_ps in product(EXTREME_PS, repeat=4):
        sender = Sender(path_ps)
        sender.quiet_until(quiet_ps)
        fresh_ps = min(max(base_ps, quiet_ps) + path_ps, NEVER_PS)
        assert sender.earliest_send_ps(base_ps) == fresh_ps
        sender.departed(entrance_ps)
        assert sender.earliest_send_ps(base_ps) == min(fresh_ps, max(base_ps, entrance_ps))


def test_a_message_in_flight_binds_until_it_has_entered_the_channel():
    sender = Sender(40)
    sender.departed(120)
    sender.quiet_until(3000)
    assert sender.earliest_send_ps(100) == 120
    assert sender.earliest_send_ps(130) == 130, "delayed by contention"
    sender.entered(120)
    assert sender.earliest_send_ps(130) == 3040


def test_messages_may_enter_in_another_order_than_they_departed():
    sender = Sender(500)
    sender.departed(120)
    sender.departed(110)
    sender.entered(110)
    assert sender.earliest_send_ps(100) == 120


def test_a_message_that_never_departed_cannot_enter():
    with pytest.raises(InvariantError, match=r"no message departed for the channel at 0\.120 ns"):
        Sender(40).entered(120)
