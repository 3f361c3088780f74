"""Envelopes that a delay line holds, and until when: times by hand."""

from runtime.wire.frames import Envelope, Grant
from sip_node.pdes.transport_zmq import DelayLine

DELAY_NS = 50_000


def envelope(lp: int, number: int, sent_ns: int) -> Envelope:
    return Envelope(lp, number, 0, Grant(number, True), sent_ns)


def test_a_content_is_held_until_the_delay_after_it_was_sent():
    line = DelayLine(DELAY_NS / 1e9)
    sent = envelope(1, 0, 1000)
    line.hold([sent])
    assert line.next_ns() == 1000 + DELAY_NS
    assert line.due(1000 + DELAY_NS - 1) == []
    assert line.due(1000 + DELAY_NS) == [sent]
    assert line.due(1000 + DELAY_NS) == []


def test_contents_of_a_peer_leave_in_their_order_and_peers_do_not_wait_for_each_other():
    line = DelayLine(DELAY_NS / 1e9)
    first, second, other = envelope(1, 0, 2000), envelope(1, 1, 2500), envelope(2, 0, 1000)
    line.hold([first, second])
    line.hold([other])
    assert line.next_ns() == 1000 + DELAY_NS
    assert line.due(1500 + DELAY_NS) == [other]
    assert line.due(3000 + DELAY_NS) == [first, second]


def test_nothing_is_due_where_nothing_is_held():
    assert DelayLine(1.0).next_ns() > 1 << 61


def test_without_a_delay_everything_is_due_at_once():
    line = DelayLine(0.0)
    line.hold([envelope(1, 0, 1000)])
    assert len(line.due(1000)) == 1
