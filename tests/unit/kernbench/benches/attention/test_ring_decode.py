"""Decode on a ring of PEs of the mock runtime."""

import numpy as np
import pytest

from kernbench.benches.attention.reference import attention
from kernbench.benches.attention.rings import Ring, cube_square, pe_ring
from runtime.core.dtypes import DType, float16, float32
from tests.support.attention_rings import decode, uniform

KEYS = 6


@pytest.mark.parametrize("ring", [pe_ring(8), pe_ring(1), cube_square(4)], ids=str)
@pytest.mark.parametrize(("dtype", "tolerance"), [(float16, 1e-3), (float32, 2e-6)])
def test_every_rank_gets_dense_attention_with_the_same_bits(
    ring: Ring, dtype: DType, tolerance: float
):
    sizes = (1, len(ring.ranks) * KEYS, len(ring.ranks) * KEYS)
    q, k, v = (uniform(seed, size, 16, dtype=dtype) for seed, size in enumerate(sizes))
    result = decode(ring, q, k, v, len(k))
    np.testing.assert_allclose(result, attention(q, k, v).repeat(len(result), 0), atol=tolerance)
    np.testing.assert_array_equal(result, result[:1].repeat(len(result), 0))


@pytest.mark.parametrize("context", [1, KEYS, KEYS + 1, 4 * KEYS - 1])
def test_keys_behind_the_context_and_ranks_without_keys_contribute_nothing(context: int):
    q, k, v = (uniform(seed, size, 8) for seed, size in enumerate((1, 4 * KEYS, 4 * KEYS)))
    k[context:], v[context:] = 1e3, 1e3
    result = decode(pe_ring(4), q, k, v, context)
    exact = attention(q, k[:context], v[:context])
    np.testing.assert_allclose(result, exact.repeat(4, 0), atol=2e-6)
