"""Operands for which an operation is not defined, each with the rule."""

from collections.abc import Callable

import numpy as np
import pytest

from runtime import tl
from runtime.language.value import Value
from tests.support.kernels import refused

FLAT = np.zeros(3, np.float32)


def x() -> Value:
    return tl.zeros((2, 3), tl.float32)


NOT_DEFINED: list[tuple[Callable[[], object], str]] = [
    (
        lambda: tl.where(x(), 1, 2),
        "where: the mask is of f32; it must be a value of bools, as x > 0 is",
    ),
    (
        lambda: tl.where(True, x(), x()),
        "where: the mask is bool True; it must be a value of bools, as x > 0 is",
    ),
    (lambda: tl.where(x() > 0, 1, 2), "where: both choices are numbers, which have no element"),
    (
        lambda: tl.where(x() > 0, x(), tl.zeros(4, tl.float32)),
        "where: shapes (2, 3) and (2, 3) and (4,) do not broadcast: from the last axis on, lengths",
    ),
    (
        lambda: tl.where(x() > 0, x(), x().to(tl.int32)),
        "where: operands have types f32, i32; they must be equal: convert with x.to(dtype)",
    ),
    (
        lambda: tl.where(x() > 0, x().to(tl.int32), 0.5),
        "where: 0.5 beside a value of i32 is not an i32 itself",
    ),
    (lambda: x() == x().to(tl.float16), "eq: operands have types f16, f32; they must be equal"),
    (lambda: x().to(tl.int32) < 0.5, "lt: 0.5 beside a value of i32 is not an i32 itself"),
    (lambda: tl.arange(3, 1), "arange: stop 1 is below start 3"),
    (lambda: tl.arange(0, 300, tl.int8), "arange: 299 is not exact in i8; take a wider type"),
    (lambda: tl.arange(0, 2050, tl.float16), "arange: 2049 is not exact in f16; take a wider"),
    (lambda: tl.arange(0.5, 3), "arange: start float 0.5 is not an integer"),
    (lambda: tl.arange(0, x()), "arange: stop Value Value(shape=(2, 3), dtype=f32) is not an"),
    (lambda: tl.arange(0, 2, tl.int1), "arange: not defined for bool; compare a range of tl.int32"),
    (lambda: tl.arange(0, 2, "f"), "arange: 'f' is not an element type such as tl.float32"),
    (lambda: tl.argmax(x(), 2), "argmax: axis 2 does not exist in a value of shape (2, 3): axes"),
    (
        lambda: tl.argmin(x()[:, 3:], 1),
        "argmin: no element along axis 1 of a value of shape (2,",
    ),
    (lambda: tl.cumsum(x(), -3), "cumsum: axis -3 does not exist in a value of shape (2, 3): axes"),
    (lambda: tl.cumsum(x(), 0.0), "cumsum: axis 0.0 is not an integer"),
    (
        lambda: tl.cumsum(tl.sum(x())),
        "cumsum: axis 0 does not exist in a value of shape (): it",
    ),
    (lambda: tl.pow(2, 3), "pow: operands have types none; one of them must be a value in TCM"),
    (lambda: tl.rsqrt(x().to(tl.int32)), "rsqrt: not defined for i32, only for floating-point"),
    (lambda: tl.round(x() > 0), "round: not defined for bool, only for floating-point values"),
    (lambda: tl.reshape(FLAT, 3), "tl.reshape takes a value in TCM, such as tl.load returns, not"),
    (lambda: tl.expand_dims(3, 0), "tl.expand_dims takes a value in TCM, such as tl.load returns"),
]


@pytest.mark.parametrize(("kernel", "problem"), NOT_DEFINED, ids=range(len(NOT_DEFINED)))
def test_what_is_not_defined_is_refused_with_the_rule(
    kernel: Callable[[], object], problem: str
) -> None:
    assert refused(kernel).startswith(problem)
