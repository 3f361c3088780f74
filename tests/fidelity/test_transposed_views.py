"""Transposed views take the time of the same bytes in a row: in TCM, and in the rows of a tile."""

from collections.abc import Callable

import numpy as np
import pytest

from runtime import DPPolicy, tl, torch
from runtime.language.value import Pointer
from tests.support.world import simulate

SIDE = 256
ROWS, DEPTH = 32, 64
"""Rows and depth of a tile of an operand that lies transposed."""


def times_ps(*kernels: Callable[[Pointer], object], dtype: type = np.float16) -> list[int]:
    """The time of each kernel on one PE, on a matrix in its own slice."""

    def program(_rank: int) -> list[int]:
        matrix = np.zeros((SIDE, SIDE), dtype)
        x = torch.from_numpy(matrix, dp=DPPolicy(num_cubes=1, num_pes=1))
        launches = [torch.launch("kernel", kernel, x) for kernel in kernels]
        torch.ahbm.synchronize()
        return [launch.pe_exec_ps for launch in launches]

    return simulate(program, 1).returned[0]


def test_a_product_takes_a_transposed_view_as_the_matrix_itself() -> None:
    def plain(x: Pointer) -> None:
        tl.dot(tl.load(x, (64, 128)), tl.load(x, (128, 96)))

    def view(x: Pointer) -> None:
        tl.dot(tl.load(x, (128, 64)).mT, tl.load(x, (96, 128)).mT)

    def copied(x: Pointer) -> None:
        tl.dot(tl.load(x, (64, 128)), tl.load(x, (96, 128)).T)

    plain_ps, view_ps, copied_ps = times_ps(plain, view, copied)
    assert view_ps == plain_ps
    # Issue 3 ns; 96 vectors of 256 B: 0.5 ns to fetch and to store, 1 in the engine; fill 4 ns.
    assert copied_ps - plain_ps == 3000 + 500 + 4000 + 96_000 + 500


def test_an_operation_on_a_transposed_view_takes_the_time_of_one_on_the_value() -> None:
    def plain(x: Pointer) -> None:
        tl.load(x, (64, 128)) + 1

    def view(x: Pointer) -> None:
        tl.load(x, (64, 128)).mT + 1

    def moved(x: Pointer) -> None:
        tl.trans(tl.load(x, (64, 128)))

    plain_ps, view_ps, moved_ps = times_ps(plain, view, moved)
    assert view_ps == plain_ps == moved_ps


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32])
def test_a_tile_of_a_transposed_matrix_takes_the_time_of_the_rows_in_memory(dtype: type) -> None:
    def rows(x: Pointer) -> None:
        tl.load(x, (ROWS, DEPTH), (SIDE, 1))

    def tile(x: Pointer) -> None:
        tl.load(x, (DEPTH, ROWS), (1, SIDE))

    rows_ps, tile_ps = times_ps(rows, tile, dtype=dtype)
    assert tile_ps == rows_ps


def test_a_matrix_in_memory_is_streamed_transposed_as_by_its_strides() -> None:
    def view(x: Pointer) -> None:
        tl.dot(tl.ref(x, (64, 128)), tl.ref(x, (96, 128), (SIDE, 1)).mT)

    def strides(x: Pointer) -> None:
        tl.dot(tl.ref(x, (64, 128)), tl.ref(x, (128, 96), (1, SIDE)))

    view_ps, strides_ps = times_ps(view, strides)
    assert view_ps == strides_ps
