"""Prefill on a ring of PEs of the mock runtime."""

import numpy as np
import pytest

from kernbench.benches.attention.reference import attention
from kernbench.benches.attention.rings import Ring, cube_square, pe_ring
from runtime.core.dtypes import DType, float16, float32
from tests.support.attention_rings import prefill, uniform


@pytest.mark.parametrize(
    ("ring", "rows"), [(pe_ring(8), 4), (pe_ring(3), 5), (pe_ring(1), 6), (cube_square(3), 8)]
)
@pytest.mark.parametrize(("dtype", "tolerance"), [(float16, 1e-3), (float32, 2e-6)])
def test_a_ring_gives_dense_attention(ring: Ring, rows: int, dtype: DType, tolerance: float):
    ranks = len(ring.ranks)
    # Not as many queries as keys: the blocks of both have sizes of their own.
    sizes = (ranks * rows, ranks * (rows + 3), ranks * (rows + 3))
    q, k, v = (uniform(seed, size, 16, dtype=dtype) for seed, size in enumerate(sizes))
    np.testing.assert_allclose(prefill(ring, q, k, v), attention(q, k, v), rtol=0, atol=tolerance)
