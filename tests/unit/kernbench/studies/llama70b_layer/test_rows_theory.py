"""Bounds of the parts of a layer, by hand from the numbers of the shipped topology file."""

from dataclasses import replace

import pytest

from kernbench.benches.decoder_layer.shape import LLAMA_70B
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.llama70b_layer.rows import part_bounds
from tests.support.runs import ROOT

FILE = TopologyFile.of((ROOT / "topology.yaml").read_text("utf-8"))
GBS = 128 * 8 * 32 * 0.8
"""128 slices of 8 channels with 32 GB/s, of which 80 % are efficient."""


@pytest.mark.parametrize("sips", [1, 2])
def test_a_decode_reads_the_weights_and_the_cache_of_its_sips(sips: int):
    bounds = part_bounds(FILE.on_a_ring(sips).text, LLAMA_70B, sips)
    elements = {
        0: 8192 * (64 + 8 + 8) * 128,
        1: 2 * 8 * 8192 * 128,
        2: 8192 * 8192,
        4: 2 * 8192 * 28672,
        5: 28672 * 8192,
    }
    for index, count in elements.items():
        assert bounds[index].time_ps == pytest.approx(count * 2 / sips / GBS * 1000, abs=1)
        assert bounds[index].limit == "memory"
    if sips == 1:
        assert (bounds[3].time_ps, bounds[6].time_ps) == (0, 0)


def test_a_prefill_of_64_tokens_is_bound_by_the_gemm_engines():
    shape = replace(LLAMA_70B, tokens=64, context=64)
    bounds = part_bounds(FILE.text, shape, 1)
    # 4096 multiply-adds in a cycle of 1 ns on each of 128 PEs.
    assert bounds[4].time_ps == 64 * 8192 * 57344 * 1000 // (128 * 4096)
    # Two products of 64 * 65 / 2 scores in each of 64 heads with 128 columns.
    assert bounds[1].limit == "GEMM"
    assert bounds[1].time_ps == 64 * 65 * 64 * 128 * 1000 // (128 * 4096)


def test_an_all_reduce_of_two_sips_sends_its_bytes_over_the_links():
    shape = replace(LLAMA_70B, tokens=64, context=64)
    bound = part_bounds(FILE.on_a_ring(2).text, shape, 2)[3]
    # Each SIP sends 2 (p - 1) / p = 1 of its bytes over the link of 128 GB/s to the other one.
    bytes_ps = 64 * 8192 * 2 / 128 * 1000
    assert bound.limit == "links"
    assert bytes_ps < bound.time_ps < 1.02 * bytes_ps
