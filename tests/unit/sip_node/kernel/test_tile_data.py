"""Tiles in TCM and the sums of their products: every bit is that of `accumulate`."""

from itertools import product
from zlib import crc32

import numpy as np
import pytest

from runtime.core.dtypes import DType, bfloat16, float16, float32, from_numpy, int8
from runtime.core.trace import Operand
from runtime.language.gemm import accumulate
from runtime.language.value import Array
from sip_node.kernel.tile_data import TileData, TileSums, cut_tile, loaded_tile


def tile_of(elements: Array) -> TileData:
    """The tile of a matrix."""
    dtype = from_numpy(elements.dtype)
    block = Operand(0, elements.shape, dtype.name)
    return cut_tile(block, dtype, elements.size * dtype.itemsize, elements, 0, 0)


def summed(sums: Array | None, a: Array, b: Array) -> Array:
    """The sums of a step, which begin with `sums`."""
    found = TileSums((a.shape[0], b.shape[1]))
    if sums is not None:
        found.data = sums
    found.add(tile_of(a), tile_of(b))
    assert found.data is not None
    assert found.checksum() == crc32(found.data.tobytes())
    return found.data


def bits(array: Array) -> list[int]:
    return array.view(np.uint32).ravel().tolist()


def test_every_value_of_float16_is_converted_exactly() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(-1, 1)
    one = np.ones((1, 1), np.float16)
    assert bits(summed(None, every, one)) == bits(accumulate(None, every, one))


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
        assert bits(summed(None, block, one)) == bits(accumulate(None, block, one))


@pytest.mark.parametrize(
    ("dtype", "shape"), list(product((float16, float32, bfloat16, int8), [(32, 64, 32), (1, 3, 5)]))
)
def test_steps_of_every_type_give_the_bits_of_the_reference(
    dtype: DType, shape: tuple[int, int, int]
) -> None:
    rng, (m, k, n) = np.random.default_rng(0), shape
    expected, found = None, TileSums((m, n))
    for _ in range(3):
        a, b = ((30 * rng.standard_normal(each)).astype(dtype.numpy) for each in ((m, k), (k, n)))
        expected = accumulate(expected, a, b)
        found.add(tile_of(a), tile_of(b))
        assert found.data is not None
        assert bits(found.data) == bits(expected)
        assert bits(summed(expected, a, b)) == bits(accumulate(expected, a, b))


def test_infinite_sums_and_views_with_gaps_give_the_bits_of_the_reference() -> None:
    large = np.full((4, 4), 3e38, np.float32)
    assert np.isinf(summed(large, large, large)).all()
    infinite = np.full((4, 4), np.inf, np.float16)
    zeros = np.zeros((4, 4), np.float16)
    assert np.isnan(summed(None, infinite, zeros)).all()
    view = np.arange(64, dtype=np.float32).reshape(8, 8)[::2, ::2]
    assert bits(summed(None, view, large)) == bits(accumulate(None, view, large))


@pytest.mark.parametrize("dtype", [float16, bfloat16])
def test_a_tile_is_cut_from_a_matrix_with_gaps(dtype: DType) -> None:
    matrix = np.arange(48).reshape(6, 8).astype(dtype.numpy)[:, ::2]
    tile = cut_tile(Operand(64, (2, 3), dtype.name, (8, 2)), dtype, 12, matrix, 3, 1)
    expected = np.ascontiguousarray(matrix[3:5, 1:4])
    assert tile.data is not None
    assert tile.data.tobytes() == expected.tobytes()
    assert tile.checksum == crc32(expected.tobytes())
    assert (tile.inputs[0].address, tile.shape, tile.nbytes) == (64, (2, 3), 12)


def test_without_data_there_are_no_sums() -> None:
    block, sums = Operand(0, (2, 2), "f16"), TileSums((2, 2))
    sums.add(loaded_tile((block,), float16, 8, b"", 0), cut_tile(block, float16, 8, None, 0, 0))
    assert (sums.data, sums.checksum()) == (None, 0)
