"""Chains in the mock runtime: results, values that are written over, and refusals."""

from collections.abc import Callable

import numpy as np
import pytest

from kernbench import tl
from runtime.language.value import Value
from tests.support.kernels import computed, refused

F32, F16 = tl.float32, tl.float16
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def x() -> Value:
    return tl.arange(0, 12, F32).reshape(3, 4)


def test_a_chain_returns_the_value_or_the_tuple_of_its_function() -> None:
    def kernel() -> Value:
        (one,) = tl.fused(lambda a: (a + 1,), x())
        first, second = tl.wait(tl.fused_async(lambda a, k: (a * k, a - k), x(), 2))
        return tl.fused(lambda a, b, c: a + b * c, one, first, second)

    np.testing.assert_array_equal(computed(kernel), (X + 1) + (X * 2) * (X - 2))


def test_axes_of_length_1_may_be_added_and_comparisons_choose() -> None:
    def above_mean(a: Value) -> Value:
        mean = tl.sum(a, axis=1) / 4
        return tl.where(a > mean[:, None], a, 0.0)

    expected = np.where(X.mean(axis=1)[:, None] < X, X, 0)
    np.testing.assert_array_equal(computed(lambda: tl.fused(above_mean, x())), expected)


def test_results_are_written_over_operands_that_no_later_pass_fetches() -> None:
    def kernel() -> Value:
        a, total = x(), tl.full((3, 1), 10.0, F32)
        part = a[:2]

        def add(a: Value, total: Value) -> tuple[Value, Value]:
            sums = total + tl.sum(a, axis=1, keep_dims=True)
            return sums, a * sums

        first, second = tl.fused(add, a, total, out=(total, a))
        assert (first is total, second is a) == (True, True)
        return tl.cat([a, total, part])

    sums = 10 + X.sum(axis=1, keepdims=True)
    expected = np.concatenate([(X * sums).ravel(), sums.ravel(), (X * sums)[:2].ravel()])
    np.testing.assert_array_equal(computed(kernel), expected.astype(np.float32))


REFUSALS: list[tuple[Callable[[], object], str]] = [
    (lambda: tl.fused(3, x()), "tl.fused takes a function, not int 3"),
    (
        lambda: tl.fused_async(lambda a: a + 1, x()) + 1,
        (
            "+ is not defined for a pending result: it has no elements before the kernel has "
            "waited for it; use tl.wait(pending)"
        ),
    ),
    (
        lambda: list(tl.fused_async(lambda a: (a + 1, a - 1), x())),
        (
            "iteration is not defined for a pending result: it has no elements before the kernel "
            "has waited for it; use tl.wait(pending)"
        ),
    ),
    (
        lambda: tl.fused(lambda a: a.T, x()),
        "tl.fused: trans moves elements between vectors; a chain computes them vector by vector",
    ),
    (
        lambda: tl.fused(lambda a: tl.cumsum(a, 0), x()),
        "tl.fused: cumsum moves elements between vectors; a chain computes them vector by vector",
    ),
    (
        lambda: tl.fused_async(tl.softmax, x()),
        (
            "tl.fused_async: softmax makes several passes of its own; write it in parts, as in "
            "e = tl.exp(x - tl.max(x)) and e / tl.sum(e)"
        ),
    ),
    (
        lambda: tl.fused(lambda a: tl.dot(a, a), tl.zeros((2, 2), F32)),
        (
            "tl.fused: gemm is no operation of the vector engine; a chain has elementwise "
            "functions, comparisons, casts, constants and reductions"
        ),
    ),
    (
        lambda: tl.fused(lambda a: (a + 1)[:2] * 2, x()),
        (
            "tl.fused: Value(shape=(2, 4), dtype=f32) is part of a result of the chain, which "
            "exists as a whole only, vector by vector"
        ),
    ),
    (
        lambda: tl.fused(lambda a: (a + 1).mT * 2, x()),
        (
            "tl.fused: Value(shape=(4, 3), dtype=f32) has the elements of a result of the chain in "
            "another order, which vector by vector they cannot have; transpose an operand of the "
            "chain, or what it returns"
        ),
    ),
    (
        lambda: tl.fused(lambda a: a, x()),
        "tl.fused: the function returns Value(shape=(3, 4), dtype=f32), which it has not computed",
    ),
    (
        lambda: tl.fused(lambda a: None, x()),
        "tl.fused: the function returns a value or a tuple of values, not NoneType None",
    ),
    (lambda: tl.fused(lambda a: (), x()), "tl.fused: the function returns no value"),
    (
        lambda: tl.fused(lambda a: tl.fused(lambda b: b + 1, a), x()),
        "tl.fused inside a fused function: call the inner function itself",
    ),
    (
        lambda: tl.fused(lambda a: a + 1, x(), out=(x(), x())),
        "tl.fused: the function returns 1 values, out has 2",
    ),
    (
        lambda: tl.fused(lambda a: a + 1, x(), out=tl.zeros((3, 4), F16)),
        (
            "tl.fused: the result, f32 of shape (3, 4), does not fit over out, f16 of shape "
            "(3, 4); they must be equal"
        ),
    ),
    (
        lambda: tl.fused(lambda a: (a + 1, a - tl.sum(a)), (b := x()), out=(b, None)),
        (
            "tl.fused: out, Value(shape=(3, 4), dtype=f32), is an operand that is fetched again in "
            "pass 2, after this result of pass 1 is stored"
        ),
    ),
    (
        lambda: tl.fused(lambda a: a + 1, (a := tl.zeros(8, F32))[:4], out=a[2:6]),
        (
            "tl.fused: out, Value(shape=(4,), dtype=f32), shares bytes with the operand "
            "Value(shape=(4,), dtype=f32); it is an operand, or apart from all"
        ),
    ),
]


@pytest.mark.parametrize(("kernel", "problem"), REFUSALS)
def test_what_a_chain_cannot_do_is_refused(kernel: Callable[[], object], problem: str) -> None:
    assert refused(kernel) == problem


def test_a_value_of_a_chain_does_not_exist_after_it() -> None:
    def kernel() -> None:
        kept: list[Value] = []

        def leak(a: Value) -> Value:
            kept.append(a * 2)
            return kept[0] + 1

        tl.fused(leak, x())
        tl.exp(kept[0])

    assert "its fused function, in which it was made, has ended" in refused(kernel)


def test_values_that_do_not_fit_into_the_vector_registers_are_refused() -> None:
    def kernel() -> None:
        a = tl.zeros((1040, 4), F32)
        tl.fused(lambda a: a / tl.sum(a, axis=1, keep_dims=True), a)
        tl.fused(lambda a: (tl.max(a, axis=1), tl.min(a, axis=1), tl.sum(a, axis=1), a / 2), a)
        tl.fused(lambda a, b, c, d: a * b + c * d, a, *(tl.zeros((1040, 1), F32),) * 3)
        more = [tl.zeros((1040, 1), F32) for _ in range(4)]
        tl.fused(lambda a, b, c, d, e: a * b + c * d + e, a, *more)

    # ceil(1040 / 128) registers each: 3 of them fit into 32. Four operands and c * d do not.
    problem = refused(kernel)
    assert problem.startswith(
        "tl.fused: needs 45 vector registers of 128 lanes, there are 32 (pe.math.registers); "
    )
    assert "9 for Value(shape=(1040, 1), dtype=f32)" in problem
