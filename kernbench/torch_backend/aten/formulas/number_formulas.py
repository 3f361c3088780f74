"""Common divisors of integers, the parts and neighbours of numbers of floating point, and angles of
numbers.
"""

from math import pi
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.fallback_chain import formula
from kernbench.torch_backend.runtime.pytorch_api import broadcast_tensors


@formula("gcd")
def _gcd(a: Tensor, b: Tensor) -> Any:
    if a.dtype != b.dtype:
        return NotImplemented
    greater, less = (each.abs() for each in broadcast_tensors(a, b))
    # Euclid's algorithm, as far as the slowest pair takes it.
    while less.numel() and bool((less != 0).any().item()):
        is_over = less == 0
        rest = torch.where(is_over, 0, torch.remainder(greater, less))
        greater, less = torch.where(is_over, greater, less), rest
    return greater


@formula("lcm")
def _lcm(a: Tensor, b: Tensor) -> Any:
    if a.dtype != b.dtype:
        return NotImplemented
    divisor = torch.gcd(a, b)
    multiple = torch.div(a, divisor, rounding_mode="trunc") * b
    return torch.where(divisor == 0, 0, multiple.abs())


@formula("frexp.Tensor")
def _frexp(x: Tensor) -> Any:
    if x.dtype != torch.float32:
        return NotImplemented
    # In float64 each power of 2 is a normal number.
    size = x.abs().double()
    power = size.log2().floor() + 1
    part = size * torch.exp2(-power)
    # The logarithm of a number just below a power of 2 is rounded up.
    power = torch.where(part < 0.5, power - 1, torch.where(part >= 1, power + 1, power))
    part = size * torch.exp2(-power)
    has_power = (size > 0) & (size < float("inf"))
    mantissa = torch.where(has_power, torch.copysign(part, x.double()), x.double())
    return mantissa.float(), torch.where(has_power, power, 0.0).to(torch.int32)


@formula("angle")
def _angle(x: Tensor) -> Tensor:
    if x.is_complex():
        parts = torch.view_as_real(x.resolve_conj())
        return torch.atan2(parts[..., 1], parts[..., 0])
    wide = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    # NaN remains.
    return torch.where(wide < 0, pi, torch.where(wide >= 0, 0.0, wide))


_INTEGERS = {torch.float32: torch.int32, torch.float64: torch.int64}
"""Integers with the bits of numbers: those of neighbours differ by 1."""


@formula("nextafter", is_of_narrow_types=True)
def _nextafter(a: Tensor, b: Tensor) -> Any:
    if a.dtype != b.dtype or a.dtype == torch.float16:
        return NotImplemented
    # The bits of a bfloat16 are the first ones of a float32.
    step = 1 << 16 if a.dtype == torch.bfloat16 else 1
    x, towards = (
        each.float() if each.dtype == torch.bfloat16 else each for each in broadcast_tensors(a, b)
    )
    bits = x.contiguous().view(_INTEGERS[x.dtype])
    moved = torch.where((towards > x) == (x > 0), bits + step, bits - step).view(x.dtype)
    least = torch.full((), step, dtype=bits.dtype).view(x.dtype).item()
    moved = torch.where(x == 0, torch.copysign(torch.full_like(x, least), towards), moved)
    result = torch.where(x == towards, towards, torch.where(x.isnan(), x, moved))
    return torch.where(towards.isnan(), towards, result).to(a.dtype)
