"""The positions of elements in blocked matrices."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime import torch
from runtime.model.blocked_layout import BlockedLayout
from runtime.model.tile_placement import ORDERS
from runtime.model.tiles import blocked_offset

sides = st.integers(1, 40)
layouts = st.builds(BlockedLayout, sides, sides, st.sampled_from(ORDERS))


def in_memory(layout: BlockedLayout, matrix: np.ndarray) -> list:
    """The elements in the order of memory."""
    flat = np.empty(matrix.size, matrix.dtype)
    flat[layout.positions(matrix.shape)] = matrix
    return flat.tolist()


def test_tiles_follow_each_other_row_by_row_or_column_by_column_of_tiles():
    matrix = np.arange(15).reshape(3, 5)
    assert in_memory(torch.blocked_row_major(2, 2), matrix) == [
        0,
        1,
        5,
        6,
        2,
        3,
        7,
        8,
        4,
        9,
        10,
        11,
        12,
        13,
        14,
    ]
    assert in_memory(torch.blocked_column_major(2, 2), matrix) == [
        0,
        1,
        5,
        6,
        10,
        11,
        2,
        3,
        7,
        8,
        12,
        13,
        4,
        9,
        14,
    ]


@given(layouts, sides, sides)
def test_every_element_has_its_own_position_and_none_is_unused(
    layout: BlockedLayout, rows: int, columns: int
):
    assert sorted(layout.positions((rows, columns)).reshape(-1)) == list(range(rows * columns))


@given(layouts, sides, sides)
def test_a_tile_is_one_row_major_piece_of_memory(layout: BlockedLayout, rows: int, columns: int):
    positions = layout.positions((rows, columns))
    for top in range(0, rows, layout.rows):
        for left in range(0, columns, layout.columns):
            tile = positions[top : top + layout.rows, left : left + layout.columns].reshape(-1)
            assert tile.tolist() == list(range(tile[0], tile[0] + tile.size))


@given(sides, sides, sides, sides)
def test_row_major_tiles_begin_where_the_scheduler_of_a_pe_looks_for_them(
    rows: int, columns: int, height: int, width: int
):
    positions = torch.blocked_row_major(height, width).positions((rows, columns))
    for top in range(0, rows, height):
        for left in range(0, columns, width):
            assert positions[top, left] == blocked_offset(
                (rows, columns), (height, width), top, left
            )


def test_a_tile_as_large_as_the_matrix_is_the_matrix():
    assert in_memory(torch.blocked_row_major(99, 99), np.arange(12).reshape(3, 4)) == list(
        range(12)
    )


def test_an_empty_matrix_has_no_positions():
    assert torch.blocked_row_major(2, 2).positions((0, 4)).shape == (0, 4)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (
            lambda: torch.blocked_row_major(0, 4),
            "tiles of 0 x 4 elements: both lengths must be at least 1",
        ),
        (
            lambda: BlockedLayout(2, 2, "rowmajor"),
            "tiles in 'rowmajor' order: unknown order; did you mean 'row_major'?",
        ),
        (
            lambda: torch.blocked_row_major(2, 2).positions((2, 2, 2)),
            "a blocked layout is of matrices, with 2 axes; shape (2, 2, 2) has 3",
        ),
    ],
)
def test_what_is_no_tiling_is_refused(make, problem: str):
    with pytest.raises(ValueError, match=re.escape(problem)):
        make()


@given(layouts, sides, sides)
def test_a_matrix_is_packed_in_the_order_of_its_positions(
    layout: BlockedLayout, rows: int, columns: int
) -> None:
    matrix = np.arange(rows * columns).reshape(rows, columns)
    packed = layout.packed(matrix)
    assert packed.tolist() == in_memory(layout, matrix)
    assert layout.unpacked(packed, matrix.shape).tolist() == matrix.tolist()
