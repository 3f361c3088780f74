"""The arithmetic of a step in C: every bit is that of the reference."""

from itertools import product

import numpy as np
import pytest

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.dtypes import DType, bfloat16, float16, float32, int8
from runtime.language.gemm import accumulate
from runtime.language.value import Array

if not IS_COMPILED:
    pytest.skip("the compiled core does not run", allow_module_level=True)

from sip_node.compiled.tile_product import TileProducts

TILES = TileProducts(accumulate)


def bits(array: Array) -> list[int]:
    return array.view(np.uint32).ravel().tolist()


def test_every_value_of_float16_is_converted_exactly() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(-1, 1)
    one = np.ones((1, 1), np.float16)
    assert bits(TILES.accumulate(None, every, one)) == bits(accumulate(None, every, one))


@pytest.mark.parametrize("count", [1, 3, 4, 7, 62])
def test_halves_are_converted_exactly_in_blocks_of_any_length(count: int) -> None:
    # Without infinities, which the reference converts. The instruction takes four at a time, the
    # loop in C what is left: blocks of up to three are all its own.
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)]
    one = np.ones((1, 1), np.float16)
    step = count if count > 3 else 64
    for start in range(0, len(finite) - count + 1, step):
        block = np.ascontiguousarray(finite[start : start + count]).reshape(-1, 1)
        assert bits(TILES.accumulate(None, block, one)) == bits(accumulate(None, block, one))


@pytest.mark.parametrize(
    ("dtype", "shape"), list(product((float16, float32, bfloat16, int8), [(32, 64, 32), (1, 3, 5)]))
)
def test_steps_of_every_type_give_the_bits_of_the_reference(
    dtype: DType, shape: tuple[int, int, int]
) -> None:
    rng, (m, k, n) = np.random.default_rng(0), shape
    expected = found = None
    for _ in range(3):
        a, b = ((30 * rng.standard_normal(each)).astype(dtype.numpy) for each in ((m, k), (k, n)))
        expected, found = accumulate(expected, a, b), TILES.accumulate(found, a, b)
        assert bits(found) == bits(expected)


def test_infinite_sums_and_views_with_gaps_give_the_bits_of_the_reference() -> None:
    large = np.full((4, 4), 3e38, np.float32)
    assert np.isinf(TILES.accumulate(large, large, large)).all()
    infinite = np.full((4, 4), np.inf, np.float16)
    zeros = np.zeros((4, 4), np.float16)
    assert np.isnan(TILES.accumulate(None, infinite, zeros)).all()
    view = np.arange(64, dtype=np.float32).reshape(8, 8)[::2, ::2]
    assert bits(TILES.accumulate(None, view, large)) == bits(accumulate(None, view, large))
