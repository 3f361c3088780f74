"""The kernels of tensor methods, in pieces that are smaller than their parts."""

import numpy as np
import pytest

from runtime import mock, tl
from runtime.device.kernels import copies


@pytest.mark.parametrize("piece", [1, 3, 7, 100])
def test_parts_are_filled_and_copied_in_pieces(piece: int) -> None:
    source, target = np.arange(20, dtype=np.float32), np.zeros(20, np.int32)

    def kernel(x: tl.Pointer, y: tl.Pointer) -> None:
        copies.copy(((x, y + 1, 7), (x + 10, y + 11, 5)), piece)
        copies.fill(((y + 17, 3),), 9, piece)

    mock.launch(kernel, source, target)
    assert target.tolist() == [0, *range(7), 0, 0, 0, *range(10, 15), 0, 9, 9, 9]


@pytest.mark.parametrize("tile", [1, 2, 5])
def test_rows_of_a_transposed_matrix_are_columns(tile: int) -> None:
    source, target = np.arange(15, dtype=np.int32).reshape(3, 5), np.zeros((5, 3), np.int32)

    def kernel(x: tl.Pointer, y: tl.Pointer) -> None:
        copies.transpose(x, y, (3, 5), (1, 5), tile)

    mock.launch(kernel, source, target)
    np.testing.assert_array_equal(target[1:], source.T[1:])
    assert not target[0].any()


@pytest.mark.parametrize("piece", [1, 2, 6, 100])
def test_columns_are_copied_into_a_wider_matrix(piece: int) -> None:
    source, target = np.arange(12, dtype=np.int32).reshape(4, 3), np.zeros((4, 5), np.int32)

    def kernel(x: tl.Pointer, y: tl.Pointer) -> None:
        copies.copy_columns(x, y + 1, 3, 5, (1, 4), piece)

    mock.launch(kernel, source, target)
    np.testing.assert_array_equal(target[1:, 1:4], source[1:])
    assert (target[0].any(), target[:, 0].any(), target[:, 4].any()) == (False, False, False)
