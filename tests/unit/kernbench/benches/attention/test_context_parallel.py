"""The division of a sequence over ranks: which keys a block of queries sees, and the work."""

import numpy as np
import pytest

from kernbench.benches.attention.context_parallel import RingStep, SequenceParts

ROWS = 4


def parts(ranks: int, *, is_causal: bool = True, is_zigzag: bool = False) -> SequenceParts:
    tokens = 2 * ranks * 3 * ROWS
    return SequenceParts(tokens=tokens, ranks=ranks, is_causal=is_causal, is_zigzag=is_zigzag)


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("is_zigzag", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
def test_all_steps_together_see_each_key_that_the_mask_shows_once(
    ranks: int, is_zigzag: bool, is_causal: bool
):
    division = parts(ranks, is_causal=is_causal, is_zigzag=is_zigzag)
    seen = np.zeros((division.tokens, division.tokens), int)
    for rank in range(ranks):
        queries = division.positions(rank)
        last = dict.fromkeys(range(0, division.rank_tokens, ROWS), -1)
        for number in range(ranks):
            keys = division.positions((rank - number) % ranks)
            for block in RingStep(division, rank, number).blocks(ROWS):
                # No step has keys for a block behind its last one.
                assert last[block.first] < 0
                last[block.first] = number if block.is_last else -1
                for row in range(ROWS):
                    count = block.keys - (ROWS - 1 - row if block.is_causal else 0)
                    np.add.at(seen[queries[block.first + row]], keys[:count], 1)
        assert min(last.values()) >= 0
        assert seen[queries].sum() == division.scores(rank)
    shown = np.tril(np.ones_like(seen)) if is_causal else np.ones_like(seen)
    np.testing.assert_array_equal(seen, shown)


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_zigzag_gives_all_ranks_equal_work_in_every_step(ranks: int):
    division = parts(ranks, is_zigzag=True)
    tokens = division.tokens
    assert {division.scores(rank) for rank in range(ranks)} == {tokens * (tokens + 1) // 2 // ranks}
    for number in range(ranks):
        keys = {
            sum(block.keys for block in RingStep(division, rank, number).blocks(ROWS))
            for rank in range(ranks)
        }
        assert len(keys) == 1


def test_contiguous_chunks_give_the_last_rank_nearly_twice_the_mean():
    division = parts(8)
    work = [division.scores(rank) for rank in range(8)]
    # Rank r of n: (2 r + 1) / n of the mean, plus the half of the diagonal.
    length = division.rank_tokens
    assert work == [length * rank * length + length * (length + 1) // 2 for rank in range(8)]
    assert max(work) == pytest.approx(15 / 8 * np.mean(work), rel=0.03)
