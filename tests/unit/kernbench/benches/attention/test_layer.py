"""The sizes of a layer, and the blocks of queries that its PEs get."""

from collections import Counter

import pytest

from kernbench.benches.attention.layer import LLAMA_70B, AttentionLayer, PeGrid, dealt

GRID = PeGrid(cubes=16, pes=8)


def layer(kv_heads: int, batch: int, tokens: int) -> AttentionLayer:
    return AttentionLayer(
        heads=8 * kv_heads, kv_heads=kv_heads, depth=128, batch=batch, tokens=tokens
    )


def test_a_rank_has_whole_groups_of_heads():
    own = LLAMA_70B.of_rank(8)
    assert (own.heads, own.kv_heads, own.group, own.tokens) == (8, 1, 8, 4096)
    assert LLAMA_70B.of_rank(2).sequences == 4


@pytest.mark.parametrize("each", [layer(8, 1, 1024), layer(1, 1, 4096), layer(8, 4, 256)], ids=str)
def test_every_block_is_dealt_once_and_the_keys_evenly(each: AttentionLayer):
    rows = 64
    by_pe = {
        (cube, pe): dealt(each, rows, GRID, cube, pe)
        for cube in range(GRID.cubes)
        for pe in range(GRID.pes)
    }
    blocks = Counter(block for own in by_pe.values() for block in own)
    assert len(blocks) == each.sequences * each.group * each.tokens // rows
    assert set(blocks.values()) == {1}


def test_pes_get_equal_numbers_of_keys_where_each_gets_an_even_number_of_blocks():
    # 8 heads x 64 blocks on 128 PEs: four blocks each, dealt there and back.
    each = layer(1, 1, 4096)
    loads = {
        sum(block.block + 1 for block in dealt(each, 64, GRID, cube, pe))
        for cube in range(GRID.cubes)
        for pe in range(GRID.pes)
    }
    # 16 PEs work on all heads of the same two pairs of blocks.
    assert max(loads) - min(loads) <= 2


def test_a_pe_computes_for_the_sequences_whose_keys_it_holds():
    each = layer(8, 2, 512)
    for pe in range(GRID.pes):
        assert {block.sequence for block in dealt(each, 64, GRID, 3, pe)} == {2 * pe, 2 * pe + 1}


def test_sequences_that_pes_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="6 sequences and 8 PEs of a cube: one must divide"):
        dealt(layer(2, 3, 512), 64, GRID, 0, 0)
