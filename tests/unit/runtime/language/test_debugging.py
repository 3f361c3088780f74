"""Prints and assertions of a kernel: what they show and what they refuse."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench import mock, tl
from runtime.language.value import Pointer, Value
from tests.support.kernels import refused


def printed(capsys: pytest.CaptureFixture[str], *values: object) -> str:
    """The line of a kernel that prints `values` behind the prefix `x`."""
    mock.launch(lambda: tl.device_print("x", *values))
    return capsys.readouterr().out


def test_a_line_has_the_pe_the_kernel_the_type_and_the_elements(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def kernel() -> None:
        tl.device_print("x", tl.full((2, 2), 1.5, tl.float16), 7)

    mock.launch(kernel, pes=2, grid=(2,))
    assert capsys.readouterr().out.splitlines() == [
        f"sip 0 cube 0 pe {pe}: kernel 'kernel' program ({pe},): "
        "x: f16 (2, 2) [[1.5, 1.5], [1.5, 1.5]], 7"
        for pe in (0, 1)
    ]


def test_a_large_array_is_shortened_to_one_line_of_bounded_length(
    capsys: pytest.CaptureFixture[str],
) -> None:
    values = np.arange(10_000, dtype=np.int32)
    line = printed(capsys, Value((10_000,), tl.int32, values))
    assert line.endswith(": x: i32 (10000,) [ 0, 1, 2, ..., 9997, 9998, 9999]\n")
    cube = Value((9,) * 4, tl.int32, np.zeros((9,) * 4, np.int32))
    assert len(printed(capsys, *[cube] * 9)) < 4200


def test_a_value_without_data_is_shown_by_its_shape(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, Value((3, 4), tl.int8, None)).endswith(": x: i8 (3, 4)\n")


def below(limit: int, message: str = "") -> Callable[[], None]:
    def kernel() -> None:
        tl.device_assert(tl.reshape(tl.arange(0, 12, tl.int32), (3, 4)) < limit, message)

    return kernel


def test_an_assertion_that_holds_or_has_no_elements_changes_nothing() -> None:
    before: list[object] = []

    def kernel(x: Pointer) -> None:
        below(12)()
        tl.device_assert(True)
        tl.device_assert(np.bool(True))  # pyright: ignore[reportArgumentType]
        tl.device_assert(Value((3,), tl.int1, None))
        before.append(tl.load(x, 4).data)

    mock.launch(kernel, np.ones(4, np.float32))
    assert len(before) == 1


FAILING: list[tuple[Callable[[], Any], str]] = [
    (below(6), "tl.device_assert: element (1, 2) of shape (3, 4) is False (6 are)"),
    (below(1, "x"), "tl.device_assert: x: element (0, 1) of shape (3, 4) is False (11 are)"),
    (lambda: tl.device_assert(False, "x"), "tl.device_assert: x: the condition is False"),
    (
        lambda: tl.device_assert(tl.zeros(2, tl.float32)),
        ("tl.device_assert takes a value of bools, as x < y returns, not f32 of shape (2,)"),
    ),
    (
        lambda: tl.device_assert(1),  # pyright: ignore[reportArgumentType]
        ("tl.device_assert takes a value of bools, as x < y returns, or a Python bool, not int 1"),
    ),
    (
        lambda: tl.device_print(3),  # pyright: ignore[reportArgumentType]
        "tl.device_print takes a prefix as its first argument, not int 3",
    ),
]


@pytest.mark.parametrize(("kernel", "problem"), FAILING)
def test_what_does_not_hold_or_is_no_condition_is_an_error(
    kernel: Callable[[], Any], problem: str
) -> None:
    # The line of `below` is that of its inner function.
    assert re.sub(r"\s+", " ", refused(kernel)) == problem
