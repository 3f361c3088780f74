"""The formula of the earliest output time, term by term."""

import pytest

from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Frame
from sip_node.pdes.promises import (
    EarliestOutput,
    ForwardingPath,
    ForwardingPaths,
    InChannel,
    OutChannel,
    SendBound,
)


def output(paths: ForwardingPaths | None = None) -> tuple[EarliestOutput, InChannel, OutChannel]:
    """LP 1 with a channel from LP 0, lookahead 10 ps, and a channel to LP 2, lookahead 20 ps."""
    received, sent = InChannel(0, 1, 10), OutChannel(1, 2, 20)
    return EarliestOutput({0: received}, {2: sent}, paths or {}), received, sent


def test_a_channel_without_bounds_of_its_own_and_without_paths_never_sends():
    assert output()[0].times_ps([]) == {2: (NEVER_PS,)}


def test_the_least_bound_counts_and_takes_the_lookahead():
    bounds = [SendBound(2, 0, 140), SendBound(2, 0, 125)]
    assert output()[0].times_ps(bounds) == {2: (125 + 20,)}


def test_a_bound_for_more_remaining_hops_bounds_all_messages_too():
    eot, _, _ = output({2: ((), (), ())})
    assert eot.times_ps([SendBound(2, 1, 300), SendBound(2, 2, 500)]) == {2: (320, 320, 520)}


def test_a_forwarded_message_comes_with_one_more_remaining_hop_and_takes_its_delay():
    eot, received, _ = output({2: ((ForwardingPath(0, 3),), ())})
    received.receive(Frame((100, 200), 0), 0)
    assert eot.times_ps([SendBound(2, 0, 900)]) == {2: (200 + 3 + 20, NEVER_PS)}


def test_a_grant_raises_the_bound_of_forwarded_messages():
    eot, received, _ = output({2: ((ForwardingPath(0, 3),), ())})
    received.grant(1000)
    assert eot.times_ps([])[2][0] == 1000 + 10 + 3 + 20


def test_what_is_only_forwarded_is_bounded_by_the_promise_for_messages_that_go_on():
    eot, received, _ = output({2: ((ForwardingPath(0, 3),), ())})
    received.receive(Frame((100, 200), 0), 0)
    assert eot.forwarded_ps() == 200 + 3
    assert output()[0].forwarded_ps() == NEVER_PS


def test_a_promise_that_was_made_is_not_reduced():
    eot, _, sent = output()
    sent.frame((700,), 0)
    assert eot.times_ps([SendBound(2, 0, 5)]) == {2: (700,)}


def test_a_bound_for_a_peer_without_a_channel_is_a_defect():
    with pytest.raises(KeyError):
        output()[0].times_ps([SendBound(3, 0, 5)])
