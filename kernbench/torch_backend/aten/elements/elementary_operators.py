"""Operators of elementary functions, rounding, signs and shifts, each as one kernel over the PEs of
its result.
"""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, cast

import torch
from torch import Tensor

from kernbench.torch_backend.aten.elements import elementary_functions as functions
from kernbench.torch_backend.aten.elements import integer_functions as integers
from kernbench.torch_backend.aten.elements.pointwise_operators import Operand, compute
from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.runtime.element_types import FLOATS, INTEGERS, computed_in
from runtime.language import tl
from runtime.language.value import Value

Binary = Callable[[Value, Value], Value]
_UNARY: dict[str, Callable[[Value], Value]] = {
    "log1p": functions.log1p,
    "expm1": functions.expm1,
    "log10": functions.log10,
    "tan": functions.tan,
    "asin": functions.asin,
    "acos": functions.acos,
    "atan": functions.atan,
    "sinh": functions.sinh,
    "cosh": functions.cosh,
    "asinh": functions.asinh,
    "acosh": functions.acosh,
    "atanh": functions.atanh,
    "erfc": functions.erfc,
    "i0": partial(functions.bessel, 0, is_scaled=False),
    "special_i0e": partial(functions.bessel, 0, is_scaled=True),
    "special_i1": partial(functions.bessel, 1, is_scaled=False),
    "special_i1e": partial(functions.bessel, 1, is_scaled=True),
}
_BINARY: dict[str, Binary] = {
    "atan2.out": functions.atan2,
    "hypot.out": functions.hypot,
    "logaddexp.out": functions.logaddexp,
    "logaddexp2.out": functions.logaddexp2,
    "copysign.out": functions.copysign,
    "xlogy.OutTensor": lambda x, y: tl.where((x == 0) & (y == y), 0.0, x * tl.log(y)),  # noqa: PLR0124 - NaN
}


def of_values(function: Binary) -> Binary:
    """A function of which one operand may be a number."""

    def call(a: Value | float, b: Value | float) -> Value:
        if not isinstance(a, Value):
            assert isinstance(b, Value), "one operand is a tensor"
            return function(_repeated(a, b), b)
        return function(a, b if isinstance(b, Value) else _repeated(b, a))

    # Cast: the types of chains leave out the numbers.
    return cast(Binary, call)


def _repeated(number: float, beside: Value) -> Value:
    """A number for each element beside it: a sum with 0 would change the sign of -0 and of NaN."""
    return tl.where(beside == beside, number, tl.where(beside == beside, beside, number))  # noqa: PLR0124


def _register_unary(name: str, function: Callable[[Value], Value]) -> None:
    @operator(f"{name}.out")
    def of_out(x: Tensor, *, out: Tensor) -> Tensor:
        return compute(name, function, (x,), out)

    del of_out


def _register_binary(name: str, function: Binary) -> None:
    @operator(name)
    def of_out(a: Operand, b: Operand, *, out: Tensor) -> Any:
        if not out.is_floating_point():
            return NotImplemented
        return compute(name.partition(".")[0], of_values(function), (a, b), out)

    del of_out


for _name, _function in _UNARY.items():
    _register_unary(_name, _function)
for _name, _function in _BINARY.items():
    _register_binary(_name, _function)


@operator("erfinv.out")
def _erfinv(y: Tensor, *, out: Tensor) -> Tensor:
    # Near 1 the difference from the error function has few bits in float32.
    return compute("erfinv", functions.erfinv, (y,), out, dtype=torch.float64)


def _register_rounding(name: str, function: Callable[[Value], Value]) -> None:
    """An operator that copies integers."""

    @operator(f"{name}.out")
    def of_out(x: Tensor, *, out: Tensor) -> Tensor:
        if not x.is_floating_point():
            return out.resize_(x.shape).copy_(x)
        return compute(name, function, (x,), out)

    del of_out


_register_rounding("floor", tl.floor)
_register_rounding("ceil", tl.ceil)
_register_rounding("round", tl.round)
_register_rounding("trunc", functions.trunc)


@operator("frac.out", types=FLOATS)
def _frac(x: Tensor, *, out: Tensor) -> Tensor:
    return compute("frac", lambda x: x - functions.trunc(x), (x,), out)


@operator("round.decimals_out")
def _round_to_decimals(x: Tensor, *, decimals: int, out: Tensor) -> Any:
    if not x.is_floating_point():
        return NotImplemented
    factor = 10.0 ** abs(decimals)
    if decimals < 0:
        return compute("round", lambda x: tl.round(x / factor) * factor, (x,), out)
    return compute("round", lambda x: tl.round(x * factor) / factor, (x,), out)


def _register_extreme(name: str, function: Binary) -> None:
    """The extreme of two numbers, of which NaN is none."""

    def of_numbers(a: Value, b: Value) -> Value:
        return tl.where(a != a, b, tl.where(b != b, a, function(a, b)))  # noqa: PLR0124 - NaN

    @operator(f"{name}.out")
    def of_out(a: Operand, b: Operand, *, out: Tensor) -> Tensor:
        has_nan = out.is_floating_point()
        return compute(name, of_values(of_numbers) if has_nan else function, (a, b), out)

    del of_out


_register_extreme("fmax", tl.maximum)
_register_extreme("fmin", tl.minimum)


@operator("signbit.out")
def _signbit(x: Tensor, *, out: Tensor) -> Tensor:
    if x.dtype == torch.bool:
        return out.resize_(x.shape).fill_(False)
    if not x.is_floating_point():
        return compute("signbit", lambda x: x < 0, (x,), out, dtype=x.dtype)
    return compute("signbit", functions.is_negative, (x,), out, dtype=computed_in(x.dtype))


def _limit_test(name: str, limit: float) -> None:
    @operator(f"{name}.out")
    def is_limit(x: Tensor, *, out: Tensor) -> Tensor:
        if not x.is_floating_point():
            return out.resize_(x.shape).fill_(False)
        return compute(name, lambda x: x == limit, (x,), out, dtype=computed_in(x.dtype))

    del is_limit


_limit_test("isneginf", -inf)
_limit_test("isposinf", inf)


@operator("nan_to_num.out")
def _nan_to_num(
    x: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    out: Tensor,
) -> Tensor:
    if not x.is_floating_point():
        return out.resize_(x.shape).copy_(x)
    limits = torch.finfo(x.dtype)
    greatest = limits.max if posinf is None else float(posinf)
    least = limits.min if neginf is None else float(neginf)

    def function(x: Value) -> Value:
        limited = tl.where(x == inf, greatest, tl.where(x == -inf, least, x))
        return tl.where(x != x, float(nan or 0), limited)  # noqa: PLR0124 - NaN

    return compute("nan_to_num", function, (x,), out)


@operator("heaviside.out")
def _heaviside(x: Operand, at_zero: Operand, *, out: Tensor) -> Any:
    if out.dtype == torch.bool:
        return NotImplemented

    def function(x: Value, at_zero: Value) -> Value:
        return tl.where(x == 0, at_zero, (x > 0).to(x.dtype))

    return compute("heaviside", of_values(function), (x, at_zero), out)


@operator("logical_xor.out")
def _logical_xor(a: Operand, b: Operand, *, out: Tensor) -> Tensor:
    function = of_values(lambda x, y: (x != 0) ^ (y != 0))
    return compute("logical_xor", function, (a, b), out, dtype=torch.result_type(a, b))


def _register_shift(name: str, function: Binary) -> None:
    @operator(f"{name}.Tensor_out", types=INTEGERS)
    def of_out(a: Operand, b: Operand, *, out: Tensor) -> Any:
        if out.dtype in {torch.bool, torch.uint8}:
            return NotImplemented
        return compute(name, of_values(function), (a, b), out)

    del of_out


_register_shift("bitwise_left_shift", integers.shifted_left)
_register_shift("bitwise_right_shift", integers.shifted_right)
