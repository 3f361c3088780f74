"""Bounds of an attention layer, by hand from the numbers of the shipped topology file."""

from dataclasses import replace

import pytest

from kernbench.benches.attention.layer import LLAMA_70B
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.milestone_gqa_llama70b.headline_rows import attention_bounds
from tests.support.runs import ROOT

FILE = TopologyFile.of((ROOT / "topology.yaml").read_text("utf-8"))
PES = 128


@pytest.mark.parametrize(("tokens", "batch", "sips"), [(8192, 1, 1), (1024, 4, 8)])
def test_a_decode_reads_4096_bytes_of_keys_and_values_for_each_token(
    tokens: int, batch: int, sips: int
):
    layer = replace(LLAMA_70B, tokens=tokens, batch=batch)
    bounds = attention_bounds(FILE, layer, sips, is_decode=True)
    # Queries and results: 2 x 64 rows of 256 bytes a user. 204.8 GB/s a PE.
    nbytes = (4096 * tokens + 2 * 64 * 256) * batch
    assert bounds.memory_ps == pytest.approx(nbytes / 204.8 * 1000 / (PES * sips))
    assert bounds.binds == "memory"
    assert bounds.bound_ps == bounds.memory_ps


def test_a_prefill_is_bound_by_the_vector_engine():
    layer = replace(LLAMA_70B, tokens=2048)
    bounds = attention_bounds(FILE, layer, 1, is_decode=False)
    scores = 64 * 2048 * 2049 / 2
    # 128 multiplications for a score and 128 for its value, 4096 in a cycle of 1 ns; cycles of
    # max, fma, exp and cast 1 + 1 + 8 + 1 for 128 scores.
    assert bounds.gemm_ps == pytest.approx(scores * 256 / 4096 * 1000 / PES)
    assert bounds.vector_ps == pytest.approx(scores * 11 / 128 * 1000 / PES)
    assert bounds.binds == "vector"
