"""Blocks of memory and views of values: load, store, slices and new axes against numpy indexing."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from runtime import mock, tl
from runtime.core.dtypes import ALL, DType
from runtime.language.value import Value, row_major
from tests.support.kernels import computed, numbers, value

lengths = st.integers(1, 12)


@st.composite
def blocks(draw: st.DrawFn) -> tuple[int, int, slice, slice]:
    """Rows and columns of a matrix, and a block of it."""
    rows, columns = draw(lengths), draw(lengths)
    top, left = draw(st.integers(0, rows - 1)), draw(st.integers(0, columns - 1))
    return (
        rows,
        columns,
        slice(top, draw(st.integers(top + 1, rows))),
        slice(left, draw(st.integers(left + 1, columns))),
    )


@pytest.mark.parametrize("dtype", ALL, ids=repr)
@settings(max_examples=10, deadline=None)
@given(block=blocks(), data=st.data())
def test_a_block_of_a_matrix_is_loaded_and_stored_at_its_address(
    dtype: DType, block: tuple[int, int, slice, slice], data: st.DataObject
) -> None:
    rows, columns, down, across = block
    source = data.draw(numbers(dtype, (rows, columns)))
    target = np.zeros_like(source)
    shape = (down.stop - down.start, across.stop - across.start)

    def copy(x: tl.Pointer, y: tl.Pointer) -> None:
        first = down.start * columns + across.start
        tl.store(y + first, tl.load(x + first, shape, strides=(columns, 1)), strides=(columns, 1))

    mock.launch(copy, source, target)
    expected = np.zeros_like(source)
    expected[down, across] = source[down, across]
    np.testing.assert_array_equal(target, expected)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), rows=lengths, shape=arrays.array_shapes(max_dims=2, max_side=4))
def test_gathered_rows_are_those_of_numpy(
    data: st.DataObject, rows: int, shape: tuple[int, ...]
) -> None:
    matrix = np.arange(rows * np.prod(shape), dtype=np.int32).reshape(rows, *shape)
    # A part of each row, whose strides are those of the matrix.
    part = tuple(slice(data.draw(st.integers(1, length))) for length in shape)
    strides = row_major(matrix.shape)
    numbers = data.draw(st.lists(st.integers(0, rows - 1), max_size=20))
    of_part = tuple(each.stop for each in part)

    def from_value(x: tl.Pointer, named: tl.Pointer) -> Value:
        return tl.gather(x, tl.load(named, len(numbers)), of_part, strides)

    def from_integers(x: tl.Pointer) -> Value:
        return tl.gather(x, numbers, of_part, strides)

    listed = computed(from_integers, matrix)
    of_value = computed(from_value, matrix, np.array(numbers, np.int64))
    expected = matrix[(numbers, *part)] if numbers else np.empty((0, *of_part), np.int32)
    np.testing.assert_array_equal(listed, expected, strict=True)
    np.testing.assert_array_equal(of_value, expected, strict=True)


@st.composite
def indices(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """A shape, and slices of some axes, new axes, and in some cases an ellipsis."""
    shape = draw(arrays.array_shapes(min_dims=1, max_dims=3, max_side=6))
    index: list[Any] = [
        draw(ranges(length)) for length in shape[: draw(st.integers(0, len(shape)))]
    ]
    extra = draw(st.sampled_from([[], [None], [...], [None, ...], [None, None]]))
    return shape, tuple(draw(st.permutations(index + extra)))


def ranges(length: int) -> st.SearchStrategy[slice]:
    """A part of an axis, also with numbers from its end, and beyond it."""
    start, stop = st.integers(0, length - 1), st.integers(0, length + 2)
    return st.builds(slice, start | st.none() | start.map(lambda at: at - length), stop | st.none())


@settings(max_examples=40, deadline=None)
@given(indices())
def test_a_view_has_the_elements_of_numpy_at_their_addresses(
    drawn: tuple[tuple[int, ...], tuple[Any, ...]],
) -> None:
    shape, index = drawn
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    view = value(array)[index]
    np.testing.assert_array_equal(view.data, array[index], strict=True)
    assert view.shape == array[index].shape
    np.testing.assert_array_equal(at_its_place(view, array), array[index])


def at_its_place(view: Value, base: np.ndarray) -> np.ndarray:
    """The elements which a view selects from the row-major block at address 0."""
    places = view.address // base.itemsize + sum(
        (np.arange(length) * stride).reshape(-1, *[1] * (len(view.shape) - 1 - axis))
        for axis, (length, stride) in enumerate(zip(view.shape, view.strides, strict=True))
    ) * np.ones(view.shape, int)
    return base.reshape(-1)[places]


@settings(max_examples=30)
@given(arrays.array_shapes(min_dims=0, max_dims=4))
def test_row_major_strides_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    assert row_major(shape) == tuple(stride // 8 for stride in np.zeros(shape).strides)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 5), st.integers(1, 5))
def test_a_column_and_a_row_make_a_matrix(rows: int, columns: int) -> None:
    x, y = np.arange(rows, dtype=np.float32), np.arange(columns, dtype=np.float32)
    np.testing.assert_array_equal(
        computed(lambda: value(x)[:, None] * value(y)[None, :]), np.outer(x, y)
    )


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=8))
def test_kernels_on_several_pes_compute_their_own_parts(sizes: list[int]) -> None:
    x = np.arange(sum(sizes), dtype=np.int32)

    def negate(at: tl.Pointer, ends: list[int]) -> None:
        pe = tl.program_id(0)
        begin = sum(ends[:pe])
        tl.store(at + begin, -tl.load(at + begin, ends[pe]))

    mock.launch(negate, x, sizes, pes=len(sizes))
    np.testing.assert_array_equal(x, -np.arange(sum(sizes)))
