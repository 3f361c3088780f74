"""Ranks of SIPs in each order, and the heads that move between them."""

import pytest

from kernbench.studies.kv_transfer.rows import RankOrder, Sides


@pytest.mark.parametrize(
    ("order", "prefill", "decode", "expected"),
    [
        (RankOrder.BLOCKS, 2, 4, ((0, 1), (2, 3, 4, 5))),
        (RankOrder.MIRRORED, 2, 4, ((0, 1), (5, 4, 3, 2))),
        (RankOrder.INTERLEAVED, 2, 4, ((1, 4), (0, 2, 3, 5))),
        (RankOrder.INTERLEAVED, 4, 2, ((0, 2, 3, 5), (1, 4))),
        (RankOrder.INTERLEAVED, 2, 2, ((0, 2), (1, 3))),
        (RankOrder.INTERLEAVED, 1, 4, ((2,), (0, 1, 3, 4))),
    ],
)
def test_the_sips_of_both_sides(
    order: RankOrder, prefill: int, decode: int, expected: tuple[tuple[int, ...], tuple[int, ...]]
):
    assert tuple(Sides.of(order, prefill, decode)) == expected


@pytest.mark.parametrize("order", RankOrder)
@pytest.mark.parametrize("prefill", [1, 2, 4, 8])
@pytest.mark.parametrize("decode", [1, 2, 4, 8])
def test_every_head_moves_once_between_the_ranks_that_have_it(
    order: RankOrder, prefill: int, decode: int
):
    sides = Sides.of(order, prefill, decode)
    assert sorted((*sides.prefill, *sides.decode)) == list(range(prefill + decode))
    moves = list(sides.moves(8))
    assert [head for move in moves for head in move.heads] == list(range(8))
    for move in moves:
        for head in move.heads:
            # Tensor parallel: rank r of n has heads 8 r / n to 8 (r + 1) / n.
            assert sides.prefill.index(move.source) == head // (8 // prefill)
            assert sides.decode.index(move.target) == head // (8 // decode)
    # One message for each pair of ranks that share heads.
    assert len({(move.source, move.target) for move in moves}) == len(moves)
