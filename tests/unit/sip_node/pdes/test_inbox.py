from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.simtime import NEVER_PS
from sip_node.pdes.engine import Engine
from sip_node.pdes.inbox import Inbox

Key = tuple[int, int, int]


def deliver(keys: list[Key]) -> list[Key]:
    """The order in which an inbox hands over packets that were put in the order of `keys`."""
    engine, order = Engine(), list[Key]()

    def receive(packet: Key, tail_ps: int, source: int) -> None:
        assert (engine.now_ps, source, tail_ps) == (packet[0], packet[1], packet[0] + 7)
        order.append(packet)

    inbox = Inbox(engine, receive)
    for time_ps, source, seq in keys:
        inbox.put(time_ps, source, seq, time_ps + 7, (time_ps, source, seq))
    engine.run_before(NEVER_PS)
    assert inbox.received == len(keys)
    return order


keys = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(0, 5)), unique=True, max_size=12
)


@given(keys)
def test_packets_come_out_by_time_source_and_sequence(put: list[Key]) -> None:
    assert deliver(put) == sorted(put)


def test_the_order_of_putting_does_not_matter() -> None:
    packets = [(5, 1, 0), (5, 2, 0), (5, 1, 1), (9, 0, 0)]
    assert len({tuple(deliver(list(order))) for order in permutations(packets)}) == 1


def test_all_of_one_time_come_in_one_event_before_local_ones() -> None:
    engine, order = Engine(), list[str]()
    inbox = Inbox(engine, lambda packet, _tail_ps, source: order.append(f"{packet} {source}"))
    engine.at(5, order.append, "local")
    for source in (2, 1):
        inbox.put(5, source, 0, 6, "from")
    assert engine.run_before(NEVER_PS) == 2
    assert order == ["from 1", "from 2", "local"]


def test_a_packet_cannot_come_for_the_present() -> None:
    engine = Engine()
    inbox = Inbox(engine, print)
    engine.at(5, inbox.put, 5, 1, 0, 6, "late")
    with pytest.raises(AssertionError, match="a packet for 5 ps came at 5 ps"):
        engine.run_before(NEVER_PS)


def test_packets_put_while_one_is_handed_over_wait_for_their_time() -> None:
    engine, times = Engine(), list[int]()

    def receive(number: int, _tail_ps: int, _source: int) -> None:
        times.append(engine.now_ps)
        if number < 3:
            time_ps = engine.now_ps + 10
            inbox.put(time_ps, 1, number + 1, time_ps, number + 1)

    inbox = Inbox(engine, receive)
    inbox.put(1, 1, 0, 1, 0)
    engine.run_before(NEVER_PS)
    assert times == [1, 11, 21, 31]


def test_packets_that_are_withdrawn_do_not_come_and_others_do() -> None:
    engine, came = Engine(), list[tuple[int, str]]()

    def receive(packet: str, tail_ps: int, source: int) -> None:
        assert (tail_ps, source) == (10, 0)
        came.append((engine.now_ps, packet))

    inbox = Inbox(engine, receive)
    inbox.put(10, 0, 1, 10, "second")
    inbox.put(10, 0, 0, 10, "first")
    assert [packet for *_, packet in inbox.waiting()] == ["first", "second"]
    inbox.withdraw()
    assert inbox.waiting() == []
    inbox.put(10, 0, 2, 10, "third")
    engine.run_before(11)
    assert came == [(10, "third")]
