"""Operators that operands of kernels lack: each is a `KernelError` with what to use instead."""

import copy
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench import mock, tl
from runtime.core.errors import KernelError
from runtime.language.value import Pointer, Value
from tests.support.kernels import computed

ARRAY = np.arange(4, dtype=np.float32)


def x() -> Any:
    return tl.full(4, 3.0, tl.float32)


def refused(kernel: Callable[..., object], *arguments: Any) -> str:
    """The problem of the `KernelError`, whose line is in this file."""
    with pytest.raises(KernelError) as raised:
        mock.launch(kernel, *arguments)
    assert (raised.value.kernel, raised.value.coordinates) == (kernel.__name__, (0, 0, 0))
    assert "language/test_refusals.py:" in raised.value.line
    return raised.value.problem


BRANCHES: list[Callable[[], object]] = [
    lambda: 1 if x() else 0,
    lambda: not x(),
    lambda: x() and 1,
    lambda: x() or 1,
    lambda: [each for each in (1,) if x()],
    lambda: any([x()]),
]


@pytest.mark.parametrize("kernel", BRANCHES, ids=range(len(BRANCHES)))
def test_a_branch_on_a_value_is_refused(kernel: Callable[[], object]) -> None:
    assert refused(kernel) == (
        "the truth value (if, while, assert, and, or, not, in, a < b < c) is not defined for a "
        "value in TCM: kernels cannot branch on data; choose elements with tl.where(x > 0, a, b), "
        "and join conditions with & and |"
    )


COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@pytest.mark.parametrize("compare", COMPARISONS.values(), ids=COMPARISONS)
@pytest.mark.parametrize("number", [2, 3.0, np.float32(4)])
def test_a_comparison_is_a_value_of_bools(
    compare: Callable[[object, object], Any], number: float
) -> None:
    array = np.array([2, 3, 4, np.nan], np.float32)

    def both(p: Pointer) -> Value:
        v = tl.load(p, 4)
        # A number of numpy on the left hands the operator to the value.
        return tl.cat([compare(v, number), compare(number, v)])

    expected = [*compare(array, number), *compare(np.float32(number), array)]
    np.testing.assert_array_equal(computed(both, array), expected, strict=True)


@pytest.mark.parametrize("compare", COMPARISONS.values(), ids=COMPARISONS)
@pytest.mark.parametrize(("other", "advice"), [(None, "; compare with None by `is`"), ("x", "")])
def test_a_value_is_compared_with_values_and_numbers_only(
    compare: Callable[[object, object], object], other: object, advice: str
) -> None:
    problem = (
        f": {type(other).__name__} {other!r} is neither a value in TCM, such as tl.load returns, "
        f"nor a number{advice}"
    )
    assert refused(lambda: compare(x(), other)).endswith(problem)
    assert refused(lambda: compare(other, x())).endswith(problem)


def test_a_search_and_the_smaller_of_two_branch() -> None:
    for kernel in (
        lambda: x() in [1, 2],
        lambda: [1, 2].index(x()),
        lambda: max(x(), x()),
        lambda: sorted([x(), x()]),
        lambda: 1 < x() < 5,
        lambda: {"x": x()} == {"x": x()},
    ):
        assert refused(kernel).startswith("the truth value (if, while, assert, and, or, not, in")


def test_a_search_finds_the_value_itself() -> None:
    def kernel() -> Value:
        values = [x(), x()]
        return tl.full(1, values.index(values[0]), tl.float32)

    assert computed(kernel).tolist() == [0]


OPERATORS: list[tuple[Callable[[Any], object], str]] = [
    (lambda v: v.to(tl.int32) ** 2, "pow: not defined for i32, only for floating-point values"),
    (lambda v: v ** "2", "pow: str '2' is neither a value in TCM, such as tl.load returns, nor"),
    (lambda v: v // 2, "// is not defined for a value in TCM: divide with /, and round with "),
    (lambda v: v % 2, "% is not defined for a value in TCM: compute it with -, * and tl.floor"),
    (lambda v: divmod(v, 2), "divmod() is not"),
    (lambda v: v @ v, "@ is not defined for a value in TCM: use tl.dot(a, b) or tl.composite"),
    (lambda v: v & 1, "bitwise_and: not defined for f32, only for integers and bool"),
    (lambda v: 1 | v, "bitwise_or: not"),
    (lambda v: v ^ v, "bitwise_xor: not"),
    (lambda v: ~v, "bitwise_xor: not"),
    (lambda v: v << 1, "<< is not defined for a value in TCM: the vector engine has no shifts; "),
    (lambda v: v >> 1, ">> is not"),
    (abs, "abs() is not defined for a value in TCM: use tl.abs(x)"),
    (int, "int() is not defined for a value in TCM: kernels cannot branch on data; pass numbers"),
    (float, "float() is not"),
    (complex, "complex() is not"),
    (round, "round() is not defined for a value in TCM: use tl.floor(x), tl.ceil(x), tl.round(x)"),
    (math.sqrt, "float() is not"),
    (math.floor, "math.floor() is not"),
    (range, "the use as an integer, as in range(x), is not"),
    (len, "len() is not defined for a value in TCM: use x.shape[0]"),
    (list, "iteration is not defined for a value in TCM: take a part with a slice, as in "),
    (reversed, "reversed() is not"),
    (lambda v: 1 in v, "in is not"),
    (hash, "hash(), as in sets and keys, is not defined for a value in TCM: equal values"),
    (lambda v: {v: 1}, "hash(), as"),
    (lambda v: operator.setitem(v, 0, 1), "[...] = is not defined for a value in TCM: store a "),
    (lambda v: operator.delitem(v, 0), "del [...] is not"),
    (lambda v: operator.iadd(v[:2], 1), "+= is not defined for a part of a value: it would make"),
    (lambda v: operator.itruediv(v[None], 1), "/= is not defined for a part of a value"),
    (copy.copy, "copying by copy or pickle is not defined for a value in TCM: it exists in the"),
    (copy.deepcopy, "copying by copy or pickle is not"),
    (np.exp, "np.exp is not defined for a value in TCM: numpy and Python's functions would "),
    (np.sum, "np.sum is not"),
    (lambda v: ARRAY + v, "np.add is not"),
    (lambda v: v + ARRAY, "add: ndarray array([0., 1., 2., 3.], dtype=float32) is neither a value"),
    (np.asarray, "np.asarray() is not"),
    (lambda v: np.array([v, v]), "np.asarray() is not"),
    (lambda v: np.concatenate([v]), "np.concatenate is not"),
    (lambda v: setattr(v, "dtype", tl.int8), "'dtype' of a value in TCM cannot be set: "),
    (lambda v: v.sum(), "a value in TCM has no attribute 'sum': use tl.sum(x)"),
    (lambda v: v.item(), "a value in TCM has no attribute 'item': kernels cannot branch on data"),
    (lambda v: v.shpae, "a value in TCM has no attribute 'shpae'; did you mean 'shape'?"),
    (lambda v: f"{v:.3f}", "a value in TCM has no format '.3f'"),
    (lambda v: v[: v[0:1]], "the use as an integer"),
    (lambda v: v[v], "a value in TCM is indexed with slices and None, not Value(shape=(4,), "),
]


@pytest.mark.parametrize(("use", "problem"), OPERATORS, ids=range(len(OPERATORS)))
def test_an_operator_that_the_language_lacks_names_what_to_use(
    use: Callable[[Any], object], problem: str
) -> None:
    assert refused(lambda: use(x())).startswith(problem)


def test_numbers_of_numpy_are_operands_as_numbers_of_python_are() -> None:
    np.testing.assert_array_equal(computed(lambda: np.float32(2) * x()), np.full(4, 6, np.float32))
    np.testing.assert_array_equal(computed(lambda: 1 - x() / np.int64(3)), np.zeros(4, np.float32))


def test_assigning_to_a_name_with_an_operator_makes_a_new_value() -> None:
    def kernel() -> Value:
        a = b = x()
        a += 1
        return tl.cat([a, b])

    assert computed(kernel).tolist() == [4, 4, 4, 4, 3, 3, 3, 3]


POINTERS: list[tuple[Callable[[Any], object], str]] = [
    (lambda p: p + 1.5, "a pointer is moved by a whole number of elements, not by float 1.5"),
    (lambda p: p + x(), "a pointer is moved by a whole number of elements, not by Value "),
    (lambda p: p - p, "a pointer is moved by a whole number of elements, not by Pointer "),
    (lambda p: 1 - p, "- is not defined for a pointer: it is moved with + and - by a whole number"),
    (lambda p: p * 2, "* is not defined for a pointer"),
    (lambda p: ARRAY + p, "np.add is not defined for a pointer"),
    (lambda p: p < p + 1, "< is not defined for a pointer: it is equal or unequal to a pointer"),
    (lambda p: p == x(), "== and != of a pointer are defined with another one, not with Value "),
    (lambda p: p != 0, "== and != of a pointer are defined with another one, not with int 0"),
    (lambda p: x() == p, "eq: Pointer Pointer(address="),
    (lambda p: p[0], "[...] is not defined for a pointer: load a block with tl.load(p + start,"),
    (lambda p: operator.setitem(p, 0, 1), "[...] = is not defined for a pointer: store a block "),
    (len, "len() is not defined for a pointer: pass the number of elements as an argument"),
    (list, "iteration is not defined for a pointer"),
    (float, "float() is not defined for a pointer: int(p) is its address"),
    (lambda p: p.shape, "a pointer has no attribute 'shape': pass what the kernel needs of the"),
    (lambda p: tl.ref(p, (2, 2)) @ x(), "@ is not defined for a matrix in memory (tl.ref): use "),
    (lambda p: tl.ref(p, (2, 2)) + 1, "+ is not defined for a matrix in memory (tl.ref)"),
    (lambda p: tl.ref(p, (2, 2))[0], "[...] is not defined for a matrix in memory (tl.ref)"),
    (lambda p: tl.ref(p, (2, 2)) == 1, "== and != of a matrix in memory (tl.ref) are defined "),
    (lambda p: tl.ref(p, (2, 2)).T, "a matrix in memory (tl.ref) has no attribute 'T'"),
]


@pytest.mark.parametrize(("use", "problem"), POINTERS, ids=range(len(POINTERS)))
def test_pointers_and_matrices_in_memory_have_few_operators(
    use: Callable[[Any], object], problem: str
) -> None:
    def kernel(p: Pointer) -> None:
        use(p)

    assert refused(kernel, np.zeros((2, 2), np.float32)).startswith(problem)


def test_pointers_are_equal_by_address_and_type_and_always_true() -> None:
    def kernel(p: Pointer) -> Value:
        facts = (
            p + 1 == 1 + p,
            p != p + 1,
            bool(p),
            len({p, p + 0}) == 1,
            np.int64(1) + p == p + 1,
        )
        return tl.full(1, all(facts), tl.float32)

    assert computed(kernel, ARRAY).tolist() == [1]


def test_a_value_is_not_used_after_the_block_or_the_kernel_that_made_it() -> None:
    kept: list[Value] = []

    def kernel(p: Pointer) -> None:
        with tl.scratch():
            v = tl.load(p, 4)
            with tl.scratch():
                inner = v + 1
            assert (v + 1).shape == (4,)
        kept.append(tl.load(p, 4))
        for number, use in enumerate(uses(p, v, inner)):
            with pytest.raises(ValueError, match=r"does not exist here: .* has ended") as raised:
                use()
            assert str(raised.value).startswith(
                ("add: ", "mul: ", "sub: ", "tl.store: ", "gemm: ", "cat: ", "tl.recv: ")
            ), number

    mock.launch(kernel, ARRAY)
    assert refused(lambda: kept[0] + 1).startswith("add: Value(shape=(4,), dtype=f32) does not")


def uses(p: Pointer, v: Value, inner: Value) -> list[Callable[[], object]]:
    return [
        lambda: v + 1,
        lambda: v[1:3] * 2,
        lambda: tl.zeros(4, tl.float32) - inner,
        lambda: tl.store(p, v),
        lambda: tl.dot(v[:, None], v[None, :]),
        lambda: tl.recv(None, dst_addr=v),
    ]
