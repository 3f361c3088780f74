"""Views by strides: their axes, and what is no view. Elements of views: `test_tl_values`."""

from collections.abc import Callable

import numpy as np
import pytest

from runtime import mock, tl
from runtime.language.value import Pointer, Value
from runtime.language.views import View, expanded, reshaped, transposed
from tests.support.kernels import refused, value

ROWS = value(np.arange(24, dtype=np.int32).reshape(4, 6))


@pytest.mark.parametrize(
    ("shape", "strides", "whole", "expected"),
    [
        # Without gaps, every shape has the strides of a block without gaps.
        ((4, 6), (6, 1), (2, 1, 12), (12, 12, 1)),
        ((4, 6), (6, 1), (24,), (1,)),
        # Rows with gaps can be divided, and groups of rows; elements of two rows are not one axis.
        ((4, 6), (10, 1), (2, 2, 3, 2), (20, 10, 2, 1)),
        ((4, 6), (10, 1), (24,), None),
        ((4, 6), (10, 1), (8, 3), None),
        # The rows of a transposed matrix are columns in memory.
        ((6, 4), (1, 6), (3, 2, 4), (2, 1, 6)),
        ((6, 4), (1, 6), (12, 2), None),
        ((), (), (1, 1), (1, 1)),
        ((0, 3), (3, 1), (5, 0), (0, 0)),
    ],
)
def test_another_shape_divides_the_axes_in_memory(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    whole: tuple[int, ...],
    expected: tuple[int, ...] | None,
) -> None:
    assert reshaped(shape, strides, whole) == (None if expected is None else View(whole, expected))


def test_a_new_axis_and_exchanged_axes() -> None:
    assert expanded((4, 6), (6, 1), -1) == View((4, 6, 1), (6, 1, 0))
    assert transposed((2, 4, 6), (24, 6, 1)) == View((2, 6, 4), (24, 1, 6))


NO_VIEWS: list[tuple[Callable[[], Value], str]] = [
    (lambda: ROWS.reshape(5, 5), "reshape: a value of shape (4, 6) has 24 elements, which "),
    (lambda: ROWS.reshape(-1, 5), "reshape: a value of shape (4, 6) has 24 elements, which "),
    (lambda: ROWS.reshape(-1, -1), "reshape: a value of shape (4, 6) has 24 elements, which"),
    (lambda: ROWS.reshape(-2, -12), "reshape: a value of shape (4, 6) has 24 elements, which"),
    (lambda: ROWS.reshape(2.5), "reshape: 2.5 is not the length of an axis, an integer"),
    (lambda: ROWS.reshape(ROWS), "the use as an integer, as in range(x), is not defined for"),
    (lambda: ROWS.expand_dims(3), "expand_dims: axis 3 does not exist in the result, whose "),
    (lambda: ROWS.expand_dims("x"), "expand_dims: axis 'x' is not an integer"),
    (lambda: tl.zeros(3, tl.int8).mT, "mT: a value of shape (3,) is no matrix"),
    (lambda: ROWS.view(4), "a value in TCM has no attribute 'view': x.reshape(...) has"),
]


@pytest.mark.parametrize(("view", "problem"), NO_VIEWS, ids=range(len(NO_VIEWS)))
def test_a_view_that_does_not_exist_is_refused(view: Callable[[], Value], problem: str) -> None:
    assert refused(view).startswith(problem)


def test_a_matrix_in_memory_is_transposed_by_its_strides_unless_it_is_blocked() -> None:
    def kernel(p: Pointer) -> None:
        assert tl.ref(p, (4, 6)).mT == tl.ref(p, (6, 4), (1, 6))

    def blocked(p: Pointer) -> None:
        _ = tl.ref(p, (4, 6), blocked=True).mT

    mock.launch(kernel, np.zeros((4, 6), np.float32))
    assert refused(blocked, np.zeros((4, 6), np.float32)).startswith(
        "mT: the tiles of a blocked matrix are those of its operand"
    )
