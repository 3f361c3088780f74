"""The order of the messages of a pass round a ring; tests/property tests what it computes."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from runtime.ccl.exchange import chunk_bounds
from runtime.ccl.pipelines.message_pipeline import MessageCut
from runtime.ccl.pipelines.ring_pipeline import Iteration, RingPass
from runtime.ccl.reduction import ReduceOp
from runtime.core.dtypes import int32
from runtime.language.value import Pointer

CUT = MessageCut(elements=8, lag=4, held=2, posted=8, in_place=True)


def ring(position: int, size: int, numel: int, *, halves_overlap: bool) -> RingPass:
    def chunk(_index: int) -> Pointer:
        raise AssertionError("the order needs no addresses")

    return RingPass(
        position=position,
        sizes=[stop - start for start, stop in chunk_bounds(numel, size)],
        source=chunk,
        target=chunk,
        dtype=int32,
        op=ReduceOp.SUM,
        gathers=True,
        halves_overlap=halves_overlap,
    )


def moved(iteration: Iteration) -> tuple[int, int]:
    return iteration.chunk, iteration.start


@given(size=st.integers(2, 6), length=st.integers(1, 300), overlap=st.booleans())
def test_every_piece_is_used_once_and_completed_once_and_a_message_follows_in_the_lag(
    size: int, length: int, overlap: bool
) -> None:
    numel = size * length
    orders = [
        ring(position, size, numel, halves_overlap=overlap).iterations(CUT)
        for position in range(size)
    ]
    pieces = [(chunk, at) for chunk in range(size) for at in range(0, length, 8)]
    last_step = 2 * (size - 1) - 1
    for behind, here in pairwise([*orders, orders[0]]):
        assert sorted(moved(each) for each in here if each.uses_own) == pieces
        assert sorted(moved(each) for each in here if each.completes) == pieces
        # What a position sends is what the next one receives, in this order.
        sent = [(each.step, moved(each)) for each in behind if each.step < last_step]
        assert sent == [(each.step - 1, moved(each)) for each in here if each.step >= 0]
        sent_at = {(each.step, moved(each)): at for at, each in enumerate(behind)}
        flights = [
            at - sent_at[each.step - 1, moved(each)]
            for at, each in enumerate(here)
            if each.step >= 0
        ]
        # Twice the lag where a block ends and the next one begins.
        assert 0 < min(flights) <= max(flights) <= 2 * CUT.lag


def test_the_halves_of_two_blocks_alternate_where_there_are_many_blocks() -> None:
    steps = [each.step for each in ring(0, 3, 3 * 8 * 32, halves_overlap=True).iterations(CUT)]
    # Half of the lag of messages a block; its second half runs beside the first half of the next.
    assert steps[:6] == [-1, -1, 0, 0, 1, -1]
    assert steps[8:14] == [2, 0, 2, 0, 3, 1]
