"""The time of a layer, by hand from the numbers of the shipped topology file."""

from dataclasses import replace
from fractions import Fraction

import pytest

from kernbench.benches.decoder_layer.shape import LLAMA_70B
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.kv_transfer.points import layer_ps, layer_work
from tests.support.topologies import default_text

FILE = TopologyFile.of(default_text())
WEIGHTS = 855_638_016
"""Weights of a layer: 80 layers, two matrices of 32,000 x 8192 for the tokens and 161 norms of 8192
are the 68,976,648,192 of the published model.
"""


def test_the_products_bind_for_many_new_tokens_and_the_weights_for_few():
    # Two SIPs of 128 PEs; 4096 multiplications in a ns, 204.8 bytes in a ns.
    scores = 64 * (960 * 64 + 64 * 65 // 2)
    products = Fraction(64 * WEIGHTS + 2 * 128 * scores, 256 * 4096) * 1000
    assert layer_ps(FILE, replace(LLAMA_70B, tokens=64, context=1024), 2) == products
    weights = WEIGHTS * 2 / 204.8 / 256 * 1000
    one = layer_ps(FILE, replace(LLAMA_70B, tokens=1, context=1024), 2)
    assert float(one) == pytest.approx(weights)


def test_the_vectors_of_a_pe_take_the_time_of_the_layer():
    # A vector of 128 square roots takes 16 ns; each PE writes a 128th of K and V of two heads.
    work = layer_work(FILE, replace(LLAMA_70B, context=1024), Fraction(160_001), 2)
    assert (work.vectors, work.lanes, work.kv) == (11, 128, 2 * 2 * 1024 * 128 // 128)
