import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.core.simtime import NEVER_PS
from sip_node.kernel.containers.arrival_queue import ArrivalQueue

keys = st.lists(
    st.tuples(st.sampled_from([0, 1, NEVER_PS - 1]), st.integers(0, 3), st.integers(0, 5)),
    unique=True,
    max_size=40,
)


@given(keys, st.data())
def test_packets_leave_in_the_total_order_whenever_they_come(
    put: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    queue, waiting = ArrivalQueue(), list[tuple[int, int, int]]()
    steps = data.draw(st.permutations([*put, *[None] * len(put)]))
    for key in steps:
        if key is not None:
            queue.put(*key, key[0] + 7, key)
            waiting.append(key)
        elif waiting:
            first = min(waiting)
            assert queue.first_ps() == first[0]
            assert queue.pop() == first
            assert (queue.source, queue.tail_ps) == (first[1], first[0] + 7)
            waiting.remove(first)
        assert [each[:3] for each in queue.waiting()] == sorted(waiting)
    assert queue.first_ps() == (min(waiting)[0] if waiting else NEVER_PS)


def test_an_empty_queue_has_no_packet() -> None:
    with pytest.raises(IndexError):
        ArrivalQueue().pop()
