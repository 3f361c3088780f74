"""Operators that compute corresponding elements, each as one kernel over the PEs of its result.

Operands of float16 and bfloat16 are computed in float32 and rounded once.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import pi, sqrt
from typing import cast

import torch
from torch import Tensor

from kernbench.torch_backend.aten.known_results import note_result
from kernbench.torch_backend.aten.operators import DEVICE, operator
from kernbench.torch_backend.launching.launches import launch_pointwise
from kernbench.torch_backend.runtime.element_types import (
    COMPUTED,
    FLOATS,
    INTEGERS,
    computed_in,
)
from kernbench.torch_backend.runtime.pytorch_api import broadcast_shapes
from runtime.device.kernels.bounds import IndexBounds
from runtime.device.kernels.pointwise import Function
from runtime.language import tl
from runtime.language.value import Value

Operand = Tensor | float
OperandFunction = Function | Callable[[Value, Value, float], Value]
"""A function of values, and of numbers in place of some of them."""
_TANH_FACTOR = sqrt(2 / pi)


def compute(
    name: str,
    function: OperandFunction,
    operands: Sequence[Operand],
    out: Tensor,
    *,
    dtype: torch.dtype | None = None,
    bounds: IndexBounds | None = None,
) -> Tensor:
    """Write `function` of tensors and numbers to `out`, which is resized to the broadcast shape.

    It is computed in `dtype`, by default that of `out`. With `bounds`, the first operand has
    indices.
    """
    plain = [
        each.item() if isinstance(each, Tensor) and each.device.type != DEVICE else each
        for each in operands
    ]
    shape = broadcast_shapes(*(each.shape for each in plain if isinstance(each, Tensor)))
    if out.shape != shape:
        out.resize_(shape)
    inner = dtype or computed_in(out.dtype)
    if inner == torch.bool and dtype is None:
        # The engine has no sums of bool; the result is whether they are not 0.
        inner = torch.int32
    values = [each if isinstance(each, Tensor) else _number(each, inner) for each in plain]
    tensors = [each for each in values if isinstance(each, Tensor)]
    bound = [None if isinstance(each, Tensor) else each for each in values]
    launch_pointwise(name, bound_to(bound, function), out, tensors, inner, bounds)
    return out


def _number(value: float, dtype: torch.dtype) -> Operand:
    """A number in the type in which it is computed: integers wrap round, as in PyTorch."""
    if dtype.is_floating_point:
        return float(value)
    if dtype == torch.bool:
        return bool(value)
    limits = torch.iinfo(dtype)
    number = (int(value) - limits.min) % (limits.max - limits.min + 1) + limits.min
    # The engine takes numbers as float64; an integer that this rounds is an operand in memory.
    is_exact = int(float(number)) == number
    return number if is_exact else torch.tensor(number, dtype=dtype, device=DEVICE)


def bound_to(numbers: Sequence[float | None], function: OperandFunction) -> Function:
    """The function of the tensors alone, for which `numbers` has None."""
    # Cast: a function takes numbers for its values, which the types of its parameters leave out.
    of_operands = cast(Callable[..., Value], function)
    if all(each is None for each in numbers):
        return of_operands

    def of_tensors(*tensors: Value) -> Value:
        rest = iter(tensors)
        return of_operands(*(next(rest) if each is None else each for each in numbers))

    return of_tensors


def _register(
    name: str,
    function: OperandFunction,
    *,
    compares: bool = False,
    types: frozenset[torch.dtype] = COMPUTED,
) -> None:
    packet, _, overload = name.partition(".")

    def of_out(*operands: Operand, out: Tensor) -> Tensor:
        dtype = _compared_in(operands) if compares else None
        return compute(packet, function, operands, out, dtype=dtype)

    def of_grad_input(*operands: Operand, grad_input: Tensor) -> Tensor:
        return compute(packet, function, operands, grad_input)

    operator(name, types=types)(of_grad_input if overload == "grad_input" else of_out)


def _compared_in(operands: Sequence[Operand]) -> torch.dtype:
    a, b = operands
    return torch.result_type(a, b)


def compare_indices(name: str, indices: Tensor, number: int, bounds: IndexBounds) -> Tensor:
    """A comparison with a number, of indices within `bounds`."""
    out = torch.empty(indices.shape, dtype=torch.bool, device=DEVICE)
    function = _COMPARISONS[name]
    compute(name, function, (indices, number), out, dtype=indices.dtype, bounds=bounds)
    note_result(out, indices, lambda elements: getattr(torch, name)(elements, number))
    return out


def _threshold_backward(grad: Value, x: Value, threshold: float) -> Value:
    return tl.where(x > threshold, grad, grad * 0.0)


def _gelu(x: Value) -> Value:
    return x * (tl.erf(x * sqrt(0.5)) * 0.5 + 0.5)


def _gelu_backward(grad: Value, x: Value) -> Value:
    cumulative = tl.erf(x * sqrt(0.5)) * 0.5 + 0.5
    density = tl.exp(x * x * -0.5) * (1 / sqrt(2 * pi))
    return grad * (cumulative + x * density)


def _gelu_tanh_backward(grad: Value, x: Value) -> Value:
    cube = x * x * x
    bent = tl.tanh((x + cube * 0.044715) * _TANH_FACTOR)
    slope = (x * x * (3 * 0.044715) + 1.0) * _TANH_FACTOR
    return grad * ((bent + 1.0) * 0.5 + x * (1.0 - bent * bent) * slope * 0.5)


def _silu_backward(grad: Value, x: Value) -> Value:
    gate = tl.sigmoid(x)
    return grad * gate * (x * (1.0 - gate) + 1.0)


def _negative(x: Value) -> Value:
    # Modulo 256, the factor of unsigned bytes is the same.
    return x * (-1 if x.dtype.holds(-1) else 255)


def reciprocal(x: Value) -> Value:
    """1 / x."""
    return 1.0 / x


def _not(x: Value) -> Value:
    return x == 0


_BINARY: dict[str, OperandFunction] = {
    "mul.out": tl.mul,
    "div.out": tl.div,
    "maximum.out": tl.maximum,
    "minimum.out": tl.minimum,
    "sigmoid_backward.grad_input": lambda grad, y: grad * y * (1.0 - y),
    "tanh_backward.grad_input": lambda grad, y: grad * (1.0 - y * y),
    "silu_backward.grad_input": _silu_backward,
    "threshold_backward.grad_input": _threshold_backward,
}
_OF_INTEGERS: dict[str, Function] = {
    "bitwise_and.Tensor_out": tl.bitwise_and,
    "bitwise_or.Tensor_out": tl.bitwise_or,
    "bitwise_xor.Tensor_out": tl.bitwise_xor,
}
_OF_FLOATS: dict[str, OperandFunction] = {
    "silu.out": tl.silu,
    "leaky_relu.out": lambda x, slope=0.01: tl.where(x > 0, x, x * slope),
    "lerp.Scalar_out": lambda start, end, weight: start + (end - start) * weight,
    "lerp.Tensor_out": lambda start, end, weight: start + (end - start) * weight,
}
_UNARY: dict[str, Function] = {
    **{
        f"{name}.out": getattr(tl, name)
        for name in (
            *("exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "abs", "erf"),
            *("exp2", "log2"),
        )
    },
    "neg.out": _negative,
    "reciprocal.out": reciprocal,
}
_COMPARISONS: dict[str, Function] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}

for _name, _function in {**_BINARY, **_UNARY}.items():
    _register(_name, _function)
for _name, _function in _OF_INTEGERS.items():
    _register(_name, _function, types=INTEGERS)
for _name, _function in _OF_FLOATS.items():
    _register(_name, _function, types=FLOATS)
for _name, _function in _COMPARISONS.items():
    _register(f"{_name}.Tensor_out", _function, compares=True)
    _register(f"{_name}.Scalar_out", _function, compares=True)


@operator("add.out")
def _add(a: Operand, b: Operand, *, alpha: float = 1, out: Tensor) -> Tensor:
    return _scaled_sum("add", a, b, alpha, out)


@operator("sub.out")
def _sub(a: Operand, b: Operand, *, alpha: float = 1, out: Tensor) -> Tensor:
    return _scaled_sum("sub", a, b, -alpha, out)


def _scaled_sum(name: str, a: Operand, b: Operand, factor: float, out: Tensor) -> Tensor:
    if factor == 1:
        return compute(name, tl.add, (a, b), out)
    if factor == -1:
        return compute(name, tl.sub, (a, b), out)
    return compute(name, lambda x, y, by: x + y * by, (a, b, factor), out)


@operator("clamp.out", "clamp.Tensor_out")
def _clamp(
    x: Tensor, low: Operand | None = None, high: Operand | None = None, *, out: Tensor
) -> Tensor:
    if low is None:
        return compute("clamp", tl.minimum, (x, _given(high)), out)
    if high is None:
        return compute("clamp", tl.maximum, (x, low), out)
    return compute("clamp", tl.clamp, (x, low, high), out)


def _given(bound: Operand | None) -> Operand:
    assert bound is not None, "PyTorch checks that there is a bound"
    return bound


@operator("clamp_min.out", "clamp_min.Tensor_out")
def _clamp_min(x: Tensor, low: Operand, *, out: Tensor) -> Tensor:
    return compute("clamp_min", tl.maximum, (x, low), out)


@operator("clamp_max.out", "clamp_max.Tensor_out")
def _clamp_max(x: Tensor, high: Operand, *, out: Tensor) -> Tensor:
    return compute("clamp_max", tl.minimum, (x, high), out)


@operator("relu")
def _relu(x: Tensor) -> Tensor:
    return compute("relu", tl.relu, (x,), torch.empty_like(x))


@operator("relu_")
def _relu_in_place(x: Tensor) -> Tensor:
    return compute("relu", tl.relu, (x,), x)


@operator("gelu.out", types=FLOATS)
def _gelu_out(x: Tensor, *, approximate: str = "none", out: Tensor) -> Tensor:
    return compute("gelu", tl.gelu if approximate == "tanh" else _gelu, (x,), out)


@operator("gelu_backward.grad_input")
def _gelu_backward_out(
    grad: Tensor, x: Tensor, *, approximate: str = "none", grad_input: Tensor
) -> Tensor:
    function = _gelu_tanh_backward if approximate == "tanh" else _gelu_backward
    return compute("gelu_backward", function, (grad, x), grad_input)


@operator("addcmul.out")
def _addcmul(x: Operand, a: Operand, b: Operand, *, value: float = 1, out: Tensor) -> Tensor:
    return compute("addcmul", lambda x, a, b, by: x + a * b * by, (x, a, b, value), out)


@operator("addcdiv.out")
def _addcdiv(x: Operand, a: Operand, b: Operand, *, value: float = 1, out: Tensor) -> Tensor:
    return compute("addcdiv", lambda x, a, b, by: x + a / b * by, (x, a, b, value), out)


@operator("where.self")
def _where(mask: Tensor, a: Operand, b: Operand) -> Tensor:
    dtype = torch.result_type(a, b)
    shape = broadcast_shapes(*(each.shape for each in (mask, a, b) if isinstance(each, Tensor)))
    return _where_out(mask, a, b, out=torch.empty(shape, dtype=dtype, device=mask.device))


@operator("where.self_out")
def _where_out(mask: Tensor, a: Operand, b: Operand, *, out: Tensor) -> Tensor:
    return compute("where", lambda m, x, y: tl.where(m != 0, x, y), (mask, a, b), out)


@operator("masked_fill_.Scalar", "masked_fill_.Tensor")
def _masked_fill(x: Tensor, mask: Tensor, value: Operand) -> Tensor:
    number = value if isinstance(value, Tensor) else _number(value, computed_in(x.dtype))
    if isinstance(number, Tensor):
        return _where_out(mask, number, x, out=x)
    return compute("masked_fill_", partial(_filled_where, value=number), (mask, x), x)


def _filled_where(mask: Value, x: Value, value: float) -> Value:
    return tl.where(mask != 0, value, x)


@operator("isnan")
def _isnan(x: Tensor) -> Tensor:
    out = torch.empty_like(x, dtype=torch.bool)
    return compute("isnan", lambda x: x != x, (x,), out, dtype=computed_in(x.dtype))  # noqa: PLR0124 - NaN differs from itself


@operator("logical_not.out")
def _logical_not(x: Tensor, *, out: Tensor) -> Tensor:
    return compute("logical_not", _not, (x,), out, dtype=computed_in(x.dtype))


@operator("logical_and.out")
def _logical_and(a: Operand, b: Operand, *, out: Tensor) -> Tensor:
    return compute(
        "logical_and", lambda x, y: (x != 0) & (y != 0), (a, b), out, dtype=_compared_in((a, b))
    )


@operator("logical_or.out")
def _logical_or(a: Operand, b: Operand, *, out: Tensor) -> Tensor:
    return compute(
        "logical_or", lambda x, y: (x != 0) | (y != 0), (a, b), out, dtype=_compared_in((a, b))
    )


@operator("bitwise_not.out", types=INTEGERS)
def _bitwise_not(x: Tensor, *, out: Tensor) -> Tensor:
    return compute("bitwise_not", lambda x: ~x, (x,), out, dtype=x.dtype)


@operator("sign.out", "sgn.out")
def _sign(x: Tensor, *, out: Tensor) -> Tensor:
    if not x.is_floating_point():
        return NotImplemented
    return compute("sign", lambda x: tl.where(x == 0, x, x / tl.abs(x)), (x,), out)
