"""Bounds of ring attention, by hand from the numbers of the shipped topology file."""

import pytest

from kernbench.benches.attention.context_parallel import SequenceParts
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.ring_attention.rows import ring_bounds
from tests.support.runs import ROOT

FILE = TopologyFile.of((ROOT / "topology.yaml").read_text("utf-8")).on_a_ring(4)


@pytest.mark.parametrize("is_zigzag", [False, True])
def test_the_bound_is_that_of_the_rank_with_the_most_work(is_zigzag: bool):
    parts = SequenceParts(tokens=4096, ranks=4, is_causal=True, is_zigzag=is_zigzag)
    bounds = ring_bounds(FILE, parts, heads=2, depth=128)
    scores = 4096 * 4097 / 2 / 4 if is_zigzag else 1024 * 3072 + 1024 * 1025 / 2
    # 256 multiplications for a score, 4096 in a cycle of 1 ns; 1 + 1 + 8 + 1 cycles of the vector
    # engine for 128 scores.
    assert bounds.gemm_ps == pytest.approx(scores * 256 / 4096 * 1000)
    assert bounds.vector_ps == pytest.approx(scores * 11 / 128 * 1000)
    assert (bounds.bound_ps, bounds.binds) == (bounds.vector_ps, "vector")


def test_the_link_carries_the_keys_and_values_of_all_other_ranks():
    links = [
        ring_bounds(
            FILE,
            SequenceParts(tokens=tokens, ranks=4, is_causal=False, is_zigzag=False),
            heads=2,
            depth=128,
        ).link_ps
        for tokens in (1024, 2048)
    ]
    # 2 heads of 256 more tokens, 256 bytes of k and of v each, in 3 steps at 128 GB/s.
    assert links[1] - links[0] == pytest.approx(3 * 2 * 256 * 512 / 128 * 1000)
    # The rest are three alphas.
    assert 0 < 2 * links[0] - links[1] < 3 * 1_000_000
