"""Operators on complex numbers: views as pairs of real ones, and arithmetic on the pairs.

The engines compute with real numbers. The other operators on complex ones run on the host.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from kernbench.torch_backend.aten.elements.elementary_functions import hypot
from kernbench.torch_backend.aten.elements.pointwise_operators import OperandFunction, compute
from kernbench.torch_backend.aten.operators import DEVICE, complex_operator, operator
from kernbench.torch_backend.runtime.pytorch_api import broadcast_shapes
from runtime.language import tl
from runtime.language.value import Value

_PAIRS = {torch.float32: torch.complex64, torch.float64: torch.complex128}
Part = Tensor | float


@operator("view_as_complex", types=None)
def _view_as_complex(x: Tensor) -> Any:
    if x.dtype not in _PAIRS:
        return NotImplemented
    if not x.dim() or x.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    *strides, last = x.stride()
    if last != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(each % 2 for each in strides):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if x.storage_offset() % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    halved = [each // 2 for each in strides]
    return _view(x, _PAIRS[x.dtype], int(x.storage_offset()) // 2, x.shape[:-1], halved)


@operator("view_as_real", types=None)
def _view_as_real(x: Tensor) -> Tensor:
    if x.is_conj():
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate "
            "tensor so you can view it as real, use self.resolve_conj()"
        )
    strides = [*(2 * each for each in x.stride()), 1]
    return _view(x, x.dtype.to_real(), 2 * int(x.storage_offset()), [*x.shape, 2], strides)


def _view(
    x: Tensor, dtype: torch.dtype, offset: int, shape: Sequence[int], strides: Sequence[int]
) -> Tensor:
    empty = torch.empty(0, dtype=dtype, device=DEVICE)
    return empty.set_(x.untyped_storage(), offset, tuple(shape), tuple(strides))


@operator("polar.out", types=None)
def _polar(size: Tensor, angle: Tensor, *, out: Tensor) -> Tensor:
    return _written(
        "polar",
        out,
        (lambda size, angle: size * tl.cos(angle), (size, angle)),
        (lambda size, angle: size * tl.sin(angle), (size, angle)),
    )


@operator("complex.out", types=None)
def _complex(real: Tensor, imag: Tensor, *, out: Tensor) -> Tensor:
    shape = broadcast_shapes(real.shape, imag.shape)
    if out.shape != shape:
        out.resize_(shape)
    for target, part in zip(torch.view_as_real(out).unbind(-1), (real, imag), strict=True):
        target.copy_(part)
    return out


@complex_operator("mul.out")
def _mul(a: Any, b: Any, *, out: Tensor) -> Tensor:
    (x, y), (u, v) = _parts(a), _parts(b)
    if v is None:
        assert y is not None, "one operand is complex"
        return _written("mul", out, (tl.mul, (x, u)), (tl.mul, (y, u)))
    if y is None:
        return _written("mul", out, (tl.mul, (x, u)), (tl.mul, (x, v)))
    return _written(
        "mul",
        out,
        (lambda x, y, u, v: x * u - y * v, (x, y, u, v)),
        (lambda x, v, y, u: x * v + y * u, (x, v, y, u)),
    )


@complex_operator("div.out")
def _div(a: Any, b: Any, *, out: Tensor) -> Tensor:
    (x, y), (u, v) = _parts(a), _parts(b)
    if v is None:
        assert y is not None, "one operand is complex"
        return _written("div", out, (tl.div, (x, u)), (tl.div, (y, u)))
    y = 0.0 if y is None else y
    return _written(
        "div",
        out,
        (lambda x, y, u, v: (x * u + y * v) / (u * u + v * v), (x, y, u, v)),
        (lambda x, y, u, v: (y * u - x * v) / (u * u + v * v), (x, y, u, v)),
    )


@complex_operator("sgn.out")
def _sgn(x: Tensor, *, out: Tensor) -> Tensor:
    def turned(part: Value, x: Value, y: Value) -> Value:
        size = tl.sqrt(x * x + y * y)
        return part / tl.where(size == 0, 1.0, size)

    real, imaginary = _complex_parts(x)
    return _written(
        "sgn", out, (turned, (real, real, imaginary)), (turned, (imaginary, real, imaginary))
    )


@complex_operator("silu.out")
def _silu(x: Tensor, *, out: Tensor) -> Tensor:
    # The quotient of x and 1 + exp(-x).
    real, imaginary = _complex_parts(x)
    divisor = torch.empty_like(x)
    size = compute("silu", lambda x: tl.exp(x * -1.0), (real,), torch.empty_like(real))
    _written(
        "silu",
        divisor,
        (lambda size, y: size * tl.cos(y) + 1.0, (size, imaginary)),
        (lambda size, y: size * tl.sin(y) * -1.0, (size, imaginary)),
    )
    return _div(x, divisor, out=out)


@complex_operator("add.out")
def _add(a: Any, b: Any, *, alpha: complex = 1, out: Tensor) -> Any:
    return _sum("add", a, b, alpha, out)


@complex_operator("sub.out")
def _sub(a: Any, b: Any, *, alpha: complex = 1, out: Tensor) -> Any:
    return _sum("sub", a, b, -alpha, out)


def _sum(name: str, a: Any, b: Any, alpha: complex, out: Tensor) -> Any:
    if isinstance(alpha, complex):
        return NotImplemented

    def added(x: Value, y: Value, by: float) -> Value:
        return x + y * by

    (x, y), (u, v) = _parts(a), _parts(b)
    imaginary = (0.0 if y is None else y, 0.0 if v is None else v, alpha)
    return _written(name, out, (added, (x, u, alpha)), (added, imaginary))


@complex_operator("neg.out")
def _neg(x: Tensor, *, out: Tensor) -> Tensor:
    return _mul(x, -1.0, out=out)


@complex_operator("conj_physical.out")
def _conj(x: Tensor, *, out: Tensor) -> Tensor:
    real, imaginary = _complex_parts(x)
    return _written("conj", out, (tl.mul, (real, 1.0)), (tl.mul, (imaginary, -1.0)))


@complex_operator("abs.out")
def _abs(x: Tensor, *, out: Tensor) -> Tensor:
    return compute("abs", hypot, _complex_parts(x), out)


@complex_operator("sum.IntList_out")
def _sum_of_axes(
    x: Tensor,
    dim: Sequence[int] | None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    out: Tensor,
) -> Any:
    if dtype not in {None, x.dtype}:
        return NotImplemented
    if not x.dim():
        return out.resize_(()).copy_(x)
    axes = [each % x.dim() for each in dim or range(x.dim())]
    pairs = torch.view_as_real(x).sum(axes, keepdim=keepdim)
    total = torch.view_as_complex(pairs.contiguous())
    return out.resize_(total.shape).copy_(total)


def _parts(value: Any) -> tuple[Part, Part | None]:
    """The real and the imaginary part; None for a real number."""
    if isinstance(value, Tensor) and value.device.type == DEVICE:
        return _complex_parts(value) if value.is_complex() else (value, None)
    number = value.item() if isinstance(value, Tensor) else value
    return (number.real, number.imag) if isinstance(number, complex) else (number, None)


def _complex_parts(x: Tensor) -> tuple[Tensor, Tensor]:
    pairs = torch.view_as_real(x)
    return pairs[..., 0], pairs[..., 1]


def _written(name: str, out: Tensor, *parts: tuple[OperandFunction, Sequence[Part]]) -> Tensor:
    """Write functions of operands to the real and the imaginary part of `out`."""
    used = [each for _, given in parts for each in given if isinstance(each, Tensor)]
    shape = broadcast_shapes(*(each.shape for each in used))
    if out.shape != shape:
        out.resize_(shape)
    targets = list(torch.view_as_real(out).unbind(-1))
    memory = out.untyped_storage().data_ptr()
    is_operand = any(each.untyped_storage().data_ptr() == memory for each in used)
    first = torch.empty_like(targets[0]) if is_operand else targets[0]
    for target, (function, operands) in zip((first, targets[1]), parts, strict=True):
        whole = [each.expand(shape) if isinstance(each, Tensor) else each for each in operands]
        if any(isinstance(each, Tensor) for each in whole):
            compute(name, function, whole, target)
        else:
            # Of numbers alone, an operator of values is a number.
            target.fill_(cast(Callable[..., float], function)(*whole))
    if is_operand:
        # The imaginary part has been computed from the real part as it was.
        targets[0].copy_(first)
    return out
