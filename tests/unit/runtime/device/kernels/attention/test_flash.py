"""Flash attention on one PE of the mock runtime, against float64."""

from collections.abc import Sequence

import numpy as np
import pytest

from kernbench import mock, tl
from kernbench.benches.attention.grouped_prefill import store_attended
from kernbench.benches.attention.reference import attention
from runtime.core.dtypes import DType, float16, float32
from runtime.device.kernels.attention.flash import BlockShape, FlashItem
from runtime.language.value import Array
from tests.support.attention_rings import uniform

DEPTH = 16


def attended(q: Array, k: Array, v: Array, shape: BlockShape, keys: Sequence[int]) -> Array:
    """Blocks of queries over the first `keys` keys; causal where those grow with the block."""
    causal, out = len(set(keys)) > 1, np.full(q.shape, np.nan, q.dtype)

    def kernel(q: tl.Pointer, k: tl.Pointer, v: tl.Pointer, out: tl.Pointer) -> None:
        starts = [block * shape.rows * DEPTH for block in range(len(keys))]
        items = [
            FlashItem(q + start, k, v, count, causal)
            for start, count in zip(starts, keys, strict=True)
        ]
        store_attended(out, starts, items, shape)

    mock.launch(kernel, q, k, v, out)
    return out


@pytest.mark.parametrize(("dtype", "tolerance"), [(float16, 1e-3), (float32, 2e-6)])
@pytest.mark.parametrize("keys", [20, 32, 40, 96], ids="{} keys".format)
def test_all_queries_see_all_keys(keys: int, dtype: DType, tolerance: float):
    q, k, v = (uniform(seed, 96, DEPTH, dtype=dtype) for seed in range(3))
    result = attended(q, k, v, BlockShape(32, 32, DEPTH), [keys] * 3)
    np.testing.assert_allclose(result, attention(q, k[:keys], v[:keys]), rtol=0, atol=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(float16, 1e-3), (float32, 2e-6)])
@pytest.mark.parametrize("shape", [BlockShape(16, 64, DEPTH), BlockShape(32, 32, DEPTH)], ids=str)
def test_causal_queries_see_no_later_keys(shape: BlockShape, dtype: DType, tolerance: float):
    q, k, v = (uniform(seed, 96, DEPTH, dtype=dtype) for seed in range(3))
    k[-1], v[-1] = 100, 100
    keys = range(shape.rows, 97, shape.rows)
    exact = attention(q, k, v, causal=True)
    result = attended(q, k, v, shape, keys)
    np.testing.assert_allclose(result[:-1], exact[:-1], rtol=0, atol=tolerance)
    np.testing.assert_allclose(result[-1], exact[-1], rtol=1e-3)


@pytest.mark.parametrize("start", [20, 32, 95], ids="from key {}".format)
def test_keys_from_the_middle_on_come_first(start: int):
    q, k, v = (uniform(seed, 96, DEPTH) for seed in range(3))
    out = np.full(q.shape, np.nan, q.dtype)

    def kernel(q: tl.Pointer, k: tl.Pointer, v: tl.Pointer, out: tl.Pointer) -> None:
        starts = [block * 16 * DEPTH for block in range(6)]
        items = [
            FlashItem(q + first, k, v, keys, is_causal=True, start=min(start, keys - 1))
            for first, keys in zip(starts, range(16, 97, 16), strict=True)
        ]
        store_attended(out, starts, items, BlockShape(16, 32, DEPTH))

    mock.launch(kernel, q, k, v, out)
    np.testing.assert_allclose(out, attention(q, k, v, causal=True), rtol=0, atol=2e-6)


def test_a_number_added_to_all_scores_changes_no_bit():
    # Multiples of 1/4, so that scores with 1000 more are exact in float32; the scale is 1/4.
    q, k, v = (np.round(4 * uniform(seed, 64, DEPTH)) / 4 for seed in range(3))
    q[:, 0], k[:, 0] = 0, 100
    shape = BlockShape(32, 32, DEPTH)
    plain = attended(q, k, v, shape, [64] * 2)
    q[:, 0] = 40
    np.testing.assert_array_equal(plain, attended(q, k, v, shape, [64] * 2))
    np.testing.assert_allclose(plain, attention(q, k, v), rtol=0, atol=2e-6)


def test_keys_and_values_lie_in_pages_in_any_order():
    # 3, 12 and 8 pages of 4 keys in blocks of 32 keys.
    counts, order = (3, 12, 8), np.random.default_rng(0).permutation(24)
    ends = np.cumsum(counts)
    tables = [
        tuple(map(int, order[end - count : end])) for end, count in zip(ends, counts, strict=True)
    ]
    q, k, v = uniform(0, 48, DEPTH), uniform(1, 24, 4, DEPTH), uniform(2, 24, 4, DEPTH)
    out, shape = np.full(q.shape, np.nan, q.dtype), BlockShape(16, 32, DEPTH)

    def kernel(q: tl.Pointer, k: tl.Pointer, v: tl.Pointer, out: tl.Pointer) -> None:
        starts = [user * 16 * DEPTH for user in range(3)]
        items = [
            FlashItem(q + start, k, v, 4 * len(pages), pages=pages, page_keys=4)
            for start, pages in zip(starts, tables, strict=True)
        ]
        store_attended(out, starts, items, shape)

    mock.launch(kernel, q, k, v, out)
    for user, pages in enumerate(tables):
        rows = slice(16 * user, 16 * user + 16)
        own_k, own_v = (each[list(pages)].reshape(-1, DEPTH) for each in (k, v))
        np.testing.assert_allclose(out[rows], attention(q[rows], own_k, own_v), atol=2e-6)
