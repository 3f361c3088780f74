"""The cut of chunks into messages; what a pass computes is tested in tests/property."""

from hypothesis import given
from hypothesis import strategies as st

from runtime.ccl.pipelines.message_pipeline import MessageCut, RingQueues


@given(
    n_slots=st.integers(1, 64),
    slot_bytes=st.sampled_from([64, 4096, 65536]),
    room=st.integers(1, 64),
    chunk=st.integers(1, 1 << 20),
    itemsize=st.sampled_from([1, 2, 4, 8]),
)
def test_no_cut_can_deadlock_or_overflow_the_scratch(
    n_slots: int, slot_bytes: int, room: int, chunk: int, itemsize: int
) -> None:
    ring_bytes = n_slots * slot_bytes
    room_bytes = min(ring_bytes, room * 4096)
    queues = RingQueues("W", "E", n_slots, slot_bytes, room_bytes)
    cut = MessageCut.of(queues, chunk, itemsize)
    nbytes = cut.elements * itemsize
    in_ring = n_slots // -(-nbytes // slot_bytes)
    assert in_ring >= 1
    # The conditions of the proof in the docstring of the module; a copy out of the ring makes room
    # for one more message in each buffer.
    capacity = in_ring if cut.in_place else in_ring + cut.posted
    assert cut.lag < capacity
    assert cut.held + 1 < capacity
    # Receives that are posted, and twice the lag of own pieces.
    assert cut.posted * nbytes <= max(room_bytes, 2 * 64)
    assert 2 * cut.lag * nbytes <= max(room_bytes, 2 * 64)


def test_a_ring_of_16_slots_holds_eight_messages_of_which_half_are_the_lag() -> None:
    queues = RingQueues("W", "E", 16, 4096, 16 * 4096)
    expected = MessageCut(elements=4096, lag=4, held=2, posted=8, in_place=True)
    assert MessageCut.of(queues, 1 << 20, itemsize=2) == expected


def test_a_chunk_of_two_slots_is_cut_in_two_messages_that_overlap() -> None:
    queues = RingQueues("W", "E", 16, 4096, 16 * 4096)
    assert MessageCut.of(queues, 4096, itemsize=2).elements == 2048


def test_a_ring_of_three_slots_has_no_room_for_a_pipeline_and_copies_its_messages() -> None:
    queues = RingQueues("W", "E", 3, 4096, 3 * 4096)
    cut = MessageCut.of(queues, 1 << 20, itemsize=4)
    assert (cut.in_place, cut.lag) == (False, 1)
