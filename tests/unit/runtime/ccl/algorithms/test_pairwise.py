from collections import Counter
from dataclasses import replace
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.ccl.algorithms.pairwise import PairwiseRank, _merged, _receives, arguments
from runtime.ccl.config import load_ccl
from runtime.ccl.group import Group
from tests.support.topologies import variant


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 500), min_size=1, max_size=6), st.integers(1, 40), st.data())
def test_messages_cover_all_parts_in_proportion(
    sizes: list[int], message: int, data: st.DataObject
) -> None:
    own = PairwiseRank(data.draw(st.integers(0, len(sizes) - 1)), len(sizes), message, True)
    sent = Counter[int]()
    for each in _merged(sizes, own):
        assert each.start == sent[each.peer]
        # The middle of a message has the same fraction as those of the neighbouring messages: no
        # part with elements left lags by more than one of its messages.
        here = Fraction(2 * each.start + each.numel, 2 * sizes[each.peer])
        for peer, numel in enumerate(sizes):
            if numel and sent[peer] < numel:
                assert Fraction(sent[peer] + message, numel) >= here - Fraction(1, 1 << 39)
        sent[each.peer] += each.numel
    assert [sent[peer] for peer in range(len(sizes))] == sizes


def test_the_own_part_is_a_whole_round_ahead() -> None:
    distances = {each.peer: each.distance for each in _merged([8] * 4, PairwiseRank(1, 4, 8, True))}
    assert distances == {2: 1, 3: 2, 0: 3, 1: 4}


def test_slots_that_are_full_are_received_at_once() -> None:
    full, partial = (PairwiseRank(0, 2, 8, fills) for fills in (True, False))
    assert list(_receives(27, full)) == [(0, 3), (3, 24)]
    assert list(_receives(27, partial)) == [(0, 3), (3, 8), (11, 8), (19, 8)]
    assert list(_receives(24, full)) == [(0, 24)]
    assert list(_receives(0, full)) == []


def test_a_message_is_a_slot_unless_the_scratch_is_too_small_for_its_buffers() -> None:
    # 16 buffers in 1 MiB: 64 KiB each.
    config = load_ccl().resolve("pairwise")
    for slot_size, expected in ((8192, (2048, True)), (1 << 17, (1 << 14, False))):
        group = Group(1, (0, 1), replace(config, slot_size=slot_size), variant())
        assert arguments(group, 4) == (PairwiseRank(1, 2, *expected),)
