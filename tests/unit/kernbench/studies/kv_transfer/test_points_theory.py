"""Bounds and shared links, by hand."""

from dataclasses import replace

import pytest

from kernbench.benches.decoder_layer.shape import LLAMA_70B
from kernbench.studies.kv_transfer.points import link_loads, transfer_bounds
from kernbench.studies.kv_transfer.rows import LinkLoad, RankOrder, Sides
from tests.support.kv_points import TWO_PES

RING = TWO_PES.on_a_ring(4)
SHAPE = replace(LLAMA_70B, context=1024)
FOUR_HEADS = 4 * 2 * 1024 * 256
"""Bytes of K and V of the heads of one SIP of two: 128 float16 for each token."""


def test_blocks_of_two_and_two_sips_share_the_link_between_them():
    # SIP 0 is two links from SIP 2 either way, and the rule is upwards; so it is for 1 and 3.
    moves = list(Sides.of(RankOrder.BLOCKS, 2, 2).moves(8))
    assert link_loads(RING, moves, SHAPE) == (
        LinkLoad(source=0, target=1, nbytes=FOUR_HEADS, pairs=((0, 2),)),
        LinkLoad(source=1, target=2, nbytes=2 * FOUR_HEADS, pairs=((0, 2), (1, 3))),
        LinkLoad(source=2, target=3, nbytes=FOUR_HEADS, pairs=((1, 3),)),
    )
    bounds = transfer_bounds(RING, moves, SHAPE)
    assert (bounds.port, bounds.port_bytes) == ("SIP 1 to SIP 2", 2 * FOUR_HEADS)
    # 128 GB/s; the memory of two PEs with 204.8 GB/s each reads four heads.
    assert bounds.bytes_ps == pytest.approx(2 * FOUR_HEADS / 128 * 1000)
    assert bounds.memory_ps == pytest.approx(FOUR_HEADS / (2 * 204.8) * 1000)
    assert 0 < bounds.alpha_ps < 1_000_000


def test_mirrored_sips_are_neighbours():
    moves = list(Sides.of(RankOrder.MIRRORED, 2, 2).moves(8))
    loads = link_loads(RING, moves, SHAPE)
    assert [(link.source, link.target, link.nbytes) for link in loads] == [
        (0, 3, FOUR_HEADS),
        (1, 2, FOUR_HEADS),
    ]


def test_transfers_beyond_the_computation_and_the_last_layer_are_exposed():
    bounds = transfer_bounds(RING, list(Sides.of(RankOrder.MIRRORED, 2, 2).moves(8)), SHAPE)
    last, each = bounds.after_ps(1), bounds.bytes_ps
    assert bounds.after_ps(3) == pytest.approx(last + 2 * each)
    # The transfers of two layers run beside the computation of two.
    assert bounds.beside_ps(3, round(2 * each) + 1) == pytest.approx(last)
    assert bounds.beside_ps(3, round(0.5 * each)) == pytest.approx(last + 1.5 * each, abs=1)
