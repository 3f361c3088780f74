from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Message
from sip_node.pdes.engine import Engine
from sip_node.pdes.inbox import Inbox

Key = tuple[int, int, int]


def deliver(keys: list[Key]) -> list[Key]:
    """The order in which an inbox hands over messages that were put in the order of `keys`."""
    engine, order = Engine(), list[Key]()
    inbox = Inbox(
        engine, lambda message: order.append((message.time_ps, message.source, message.seq))
    )
    for time_ps, source, seq in keys:
        inbox.put(Message(time_ps, source, 0, seq))
    engine.run_before(NEVER_PS)
    assert inbox.received == len(keys)
    return order


keys = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(0, 5)), unique=True, max_size=12
)


@given(keys)
def test_messages_come_out_by_time_source_and_sequence(put: list[Key]) -> None:
    assert deliver(put) == sorted(put)


def test_the_order_of_putting_does_not_matter() -> None:
    messages = [(5, 1, 0), (5, 2, 0), (5, 1, 1), (9, 0, 0)]
    assert len({tuple(deliver(list(order))) for order in permutations(messages)}) == 1


def test_all_of_one_time_come_in_one_event_before_local_ones() -> None:
    engine, order = Engine(), list[str]()
    inbox = Inbox(engine, lambda message: order.append(f"from {message.source}"))
    engine.at(5, order.append, "local")
    for source in (2, 1):
        inbox.put(Message(5, source, 0, 0))
    assert engine.run_before(NEVER_PS) == 2
    assert order == ["from 1", "from 2", "local"]


def test_a_message_cannot_come_for_the_present() -> None:
    engine = Engine()
    inbox = Inbox(engine, print)
    engine.at(5, inbox.put, Message(5, 1, 0, 0))
    with pytest.raises(AssertionError, match="a message for 5 ps came at 5 ps"):
        engine.run_before(NEVER_PS)


def test_messages_put_while_one_is_handed_over_wait_for_their_time() -> None:
    engine, times = Engine(), list[int]()

    def receive(message: Message) -> None:
        times.append(engine.now_ps)
        if message.seq < 3:
            inbox.put(Message(message.time_ps + 10, 1, 0, message.seq + 1))

    inbox = Inbox(engine, receive)
    inbox.put(Message(1, 1, 0, 0))
    engine.run_before(NEVER_PS)
    assert times == [1, 11, 21, 31]
