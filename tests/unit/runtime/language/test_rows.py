"""Index lists of gathers: what they hold, and the messages for what is no list of rows."""

from collections.abc import Callable

import numpy as np
import pytest

from kernbench import mock, tl
from runtime.core.errors import PageFaultError
from runtime.language.rows import checked_rows
from runtime.language.value import Pointer
from tests.support.kernels import refused, value


def test_a_list_of_integers_has_int32_entries_and_a_value_its_own():
    integers = checked_rows([3, np.int64(1)], "tl.gather")
    assert (integers.numbers(), len(integers), integers.nbytes) == ((3, 1), 2, 8)
    listed = checked_rows(value(np.array([3, 1, 1], np.int64)), "tl.gather")
    assert (listed.numbers(), len(listed), listed.nbytes) == ((3, 1, 1), 3, 24)


def test_a_row_outside_of_the_memory_is_named_with_its_entry():
    def kernel(x: Pointer) -> None:
        tl.gather(x, [1, 0, 7], 4)

    with pytest.raises(PageFaultError) as raised:
        mock.launch(kernel, np.zeros((4, 4), np.float32))
    assert "(row 7, entry 2 of 3; 48 bytes past the end of array" in str(raised.value)


WRONG: list[tuple[Callable[[Pointer], object], str]] = [
    (
        lambda x: tl.gather(x, 3, 4),  # pyright: ignore[reportArgumentType]
        "tl.gather takes rows as a value of integers or as a sequence of integers, not int 3",
    ),
    (
        lambda x: tl.gather(x, [0.5], 4),  # pyright: ignore[reportArgumentType]
        "tl.gather takes rows as a value of integers or as a sequence of integers, not list [0.5]",
    ),
    (
        lambda x: tl.gather(x, [1, -2], 4),
        "tl.gather of row -2, entry 1: rows count from 0",
    ),
    (
        lambda x: tl.gather(x, tl.zeros(3, tl.float32), 4),
        "tl.gather takes rows as integers with one axis, not f32 of shape (3,)",
    ),
    (
        lambda x: tl.gather(x, tl.zeros((3, 1), tl.int32), 4),
        "tl.gather takes rows as integers with one axis, not i32 of shape (3, 1)",
    ),
    (
        lambda x: tl.gather_async(x, [1, 2], 4, out=tl.zeros((2, 3), tl.float32)),
        (
            "tl.gather_async: the result, f32 of shape (2, 4), does not fit over out, f32 of shape "
            "(2, 3); they must be equal"
        ),
    ),
    (
        lambda x: tl.gather(x, [1], 4, (1,)),
        (
            "strides (1,) with rows of shape (4,): the pitch of the rows, and one stride for each "
            "axis of a row"
        ),
    ),
    (
        lambda x: tl.gather(x, [1], 4, (-4, 1)),
        "strides (-4, 1): the pitch of the rows cannot be negative",
    ),
    (
        lambda x: tl.gather([1], x, 4),  # pyright: ignore[reportArgumentType]
        "tl.gather takes a pointer, as a tensor is passed to a kernel, not list [1]",
    ),
]


@pytest.mark.parametrize(("kernel", "problem"), WRONG)
def test_what_names_no_rows_is_refused(kernel: Callable[[Pointer], object], problem: str) -> None:
    assert refused(kernel, np.zeros((4, 4), np.float32)) == problem
