"""Divisions that are rounded, their rests, and powers, of numbers and of integers.

Quotients of float32 are rounded exactly, in float64: that of 1 and 0.1 (0.100000001 in float32) is
9, as on a CPU. Those of integers are exact; PyTorch raises an error for a divisor 0 on a CPU, and
has any number on a GPU: the divisor is 1 here.
"""

from math import log2
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.elements import elementary_functions as functions
from kernbench.torch_backend.aten.elements import integer_functions as integers
from kernbench.torch_backend.aten.elements.elementary_operators import Binary, of_values
from kernbench.torch_backend.aten.elements.pointwise_operators import Operand, compute, reciprocal
from kernbench.torch_backend.aten.operators import DEVICE, operator
from kernbench.torch_backend.runtime.pytorch_api import broadcast_shapes
from runtime.device.kernels.pointwise import Function
from runtime.language import tl


def _divided(
    name: str, of_numbers: Binary, of_integers: Binary, operands: tuple[Any, Any], out: Tensor
) -> Any:
    if out.dtype == torch.bool:
        return NotImplemented
    if out.is_floating_point():
        return compute(name, of_values(of_numbers), operands, out, dtype=torch.float64)
    return compute(name, of_values(of_integers), operands, out)


def _fresh(a: Any, b: Any) -> Tensor:
    shapes = [each.shape for each in (a, b) if isinstance(each, Tensor)]
    return torch.empty(broadcast_shapes(*shapes), dtype=torch.result_type(a, b), device=DEVICE)


def _floor_divided(a: Any, b: Any, out: Tensor) -> Any:
    return _divided("floor_divide", functions.floor_quotient, integers.floor_quotient, (a, b), out)


@operator("floor_divide")
def _floor_divide(a: Any, b: Any) -> Any:
    return _floor_divided(a, b, _fresh(a, b))


@operator("floor_divide_.Tensor")
def _floor_divide_in_place(a: Tensor, b: Any) -> Any:
    return _floor_divided(a, b, a)


@operator("floor_divide.out")
def _floor_divide_to(a: Any, b: Any, *, out: Tensor) -> Any:
    return _floor_divided(a, b, out)


@operator("div.out_mode")
def _div(a: Any, b: Any, *, rounding_mode: str | None, out: Tensor) -> Any:
    if rounding_mode == "floor":
        return _floor_divided(a, b, out)
    if rounding_mode is None:
        return compute("div", tl.div, (a, b), out)
    if out.is_floating_point():
        # PyTorch rounds the quotient in its type before it cuts the fraction.
        return compute("div", lambda a, b: functions.trunc(a / b), (a, b), out)
    return compute("div", of_values(integers.truncated_quotient), (a, b), out)


@operator("remainder.Tensor_out")
def _remainder(a: Any, b: Any, *, out: Tensor) -> Any:
    return _divided("remainder", functions.remainder, integers.remainder, (a, b), out)


@operator("remainder.Scalar_Tensor")
def _remainder_of_number(a: Any, b: Tensor) -> Any:
    return _remainder(a, b, out=_fresh(a, b))


@operator("fmod.Tensor_out")
def _fmod(a: Any, b: Any, *, out: Tensor) -> Any:
    return _divided("fmod", functions.fmod, integers.fmod, (a, b), out)


_POWERS: dict[float, Function] = {
    2: lambda x: x * x,
    3: lambda x: x * x * x,
    0.5: tl.sqrt,
    -0.5: tl.rsqrt,
    -1: reciprocal,
    -2: lambda x: reciprocal(x * x),
}


@operator("pow.Tensor_Scalar_out")
def _pow_of_tensor(x: Tensor, exponent: float, *, out: Tensor) -> Any:
    if not out.is_floating_point():
        if out.dtype == torch.bool or not isinstance(exponent, int) or exponent < 0:
            return NotImplemented
        return compute("pow", lambda x: integers.constant_power(x, exponent), (x,), out)
    if exponent in _POWERS:
        return compute("pow", _POWERS[exponent], (x,), out)
    return compute("pow", tl.pow, (x, exponent), out)


@operator("pow.Scalar_out")
def _pow_of_number(base: float, exponent: Tensor, *, out: Tensor) -> Any:
    if out.is_floating_point() and base > 0:
        return compute("pow", lambda x: tl.exp2(x * log2(base)), (exponent,), out)
    return _pow(base, exponent, out=out)


@operator("pow.Tensor_Tensor_out")
def _pow(base: Operand, exponent: Operand, *, out: Tensor) -> Any:
    if out.dtype == torch.bool:
        return NotImplemented
    function = tl.pow if out.is_floating_point() else of_values(integers.power)
    return compute("pow", function, (base, exponent), out)
