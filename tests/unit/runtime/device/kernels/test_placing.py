"""Elements combined with those that are given for their columns, on one PE."""

import numpy as np
import pytest

from runtime.core.dtypes import float32
from runtime.device.kernels.bounds import IndexBounds
from runtime.device.kernels.placing import How, PlacedRows, Placing, placed_rows
from runtime.device.kernels.sorting import SortPiece
from runtime.language.value import Pointer
from tests.support.one_pe import OnePe, run_on_one_pe

_ROWS, _COLUMNS = 3, 40
_AT_ONCE = 512 // _ROWS
"""Given elements of a row that are compared at once."""
_DRAW = np.random.default_rng(0)
_START = _DRAW.uniform(0.5, 2, (_ROWS, _COLUMNS)).astype(np.float32)


def placed(how: How, columns: np.ndarray, given: np.ndarray) -> OnePe:
    placing = Placing(
        columns=_COLUMNS,
        bounds=IndexBounds(_COLUMNS, "a row"),
        given=given.shape[1],
        how=how,
        wide=float32,
        least=-np.inf,
    )
    pieces = [SortPiece(0, _ROWS, 0, 25), SortPiece(0, _ROWS, 25, _COLUMNS)]

    def kernel(start: Pointer, columns: Pointer, given: Pointer, out: Pointer) -> None:
        placed_rows(pieces, placing, PlacedRows(start, columns, given, out))

    return run_on_one_pe(kernel, [_START, columns, given, np.zeros_like(_START)])


def product(factors: np.ndarray) -> np.float32:
    """The last half of the factors onto the first, until one is left."""
    while len(factors) > 1:
        half = len(factors) // 2
        first = factors[:half] * factors[len(factors) - half :]
        factors = np.concatenate([first, factors[half : len(factors) - half]])
    return factors[0]


@pytest.mark.parametrize("count", [1, 7, _AT_ONCE, 2 * _AT_ONCE + 11])
def test_products_are_those_of_halves_and_take_at_most_half_as_long_again_as_sums(count: int):
    columns = _DRAW.integers(0, _COLUMNS, (_ROWS, count), dtype=np.int64)
    given = _DRAW.uniform(0.5, 2, (_ROWS, count)).astype(np.float32)
    expected = _START.copy()
    for row, column in np.ndindex(*expected.shape):
        for first in range(0, count, _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            is_here = columns[row, part] == column
            expected[row, column] *= product(np.where(is_here, given[row, part], np.float32(1)))
    products = placed("product", columns, given)
    assert products.arrays[3].tobytes() == expected.tobytes()
    assert products.kernel_ps < 1.5 * placed("sum", columns, given).kernel_ps
