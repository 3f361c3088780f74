"""The distributions of PyTorch's generator for CPUs, with the same numbers on every processor.

PyTorch draws bits by the Mersenne Twister, which computes with integers, and makes numbers of them
by code for the vector unit of the processor. The bits here are PyTorch's, in its order; what is
made of them is computed with `portable_functions` and rounded where PyTorch rounds. So the numbers
are those of PyTorch on a CPU up to their last bits, which differ between CPUs.
"""

from collections.abc import Callable
from math import pi

import numpy as np
import torch
from torch import Tensor

from kernbench.torch_backend.aten.draws.portable_functions import (
    Array,
    cosine_and_sine,
    exp,
    log,
    log1p,
)
from kernbench.torch_backend.runtime.pytorch_api import from_numpy

Draw = Callable[..., Tensor]
"""A vector of `count` elements of a type, by a generator of the host and the parameters."""
_AT_ONCE = 1 << 14
"""Elements whose intermediate results stay in a cache of the processor; a multiple of 16."""
_VECTOR, _HALF = 16, 8
"""PyTorch makes 16 normal numbers of 16 uniform ones, and single ones for shorter tensors."""
_BITS = {torch.float32: (24, torch.int32), torch.float64: (53, torch.int64)}
"""The bits of a number between 0 and 1, and integers that hold them."""
_NORMAL, _NORMAL_IS_KEPT = 628, 5040
"""Positions in the state of a generator: of the second number of a pair, in units of 8 bytes,
and of the byte that is 1 if there is one.
"""


def uniform(
    count: int, dtype: torch.dtype, source: torch.Generator, low: float = 0, high: float = 1
) -> Tensor:
    """Numbers in [low, high)."""
    if dtype.is_complex:
        return _complex(uniform(2 * count, _part(dtype), source, low, high))
    wide = _drawn_in(dtype)
    drawn = _shares(count, wide, source)
    first, length = (_wide(torch.tensor(each, dtype=wide)) for each in (low, high - low))
    numbers = _as_type(_rounded(_wide(drawn) * length, wide) + first, dtype)
    # As in PyTorch, a number that is rounded up to `high` is `low`.
    return numbers.masked_fill_(numbers == torch.tensor(high, dtype=dtype), low)


def normal(
    count: int, dtype: torch.dtype, source: torch.Generator, mean: float = 0, std: float = 1
) -> Tensor:
    """Normal numbers, by Box and Muller's method."""
    if dtype.is_complex:
        # As PyTorch does, add the mean to both parts.
        return _complex(normal(2 * count, _part(dtype), source, 0.0, std / 2**0.5) + mean)
    if count < _VECTOR:
        return normal_one_by_one(count, dtype, source, mean, std)
    wide = _drawn_in(dtype)
    whole = count - count % _VECTOR
    drawn = _shares(count if wide == dtype else whole, wide, source)
    order = torch.empty(count, dtype=dtype)
    for start in range(0, whole, _AT_ONCE):
        stop = min(start + _AT_ONCE, whole)
        order[start:stop] = _normal_vectors(drawn[start:stop], mean, std)
    if whole < count:
        # PyTorch draws the last 16 elements again.
        last = _shares(_VECTOR, wide, source)
        order[-_VECTOR:] = _normal_vectors(last, mean, std)
    return order


def normal_one_by_one(
    count: int, dtype: torch.dtype, source: torch.Generator, mean: float = 0, std: float = 1
) -> Tensor:
    """Normal numbers as PyTorch draws them for short tensors and for those with gaps."""
    return _as_type(_normal_pairs(count, source) * std + mean, dtype)


def bernoulli(
    count: int, dtype: torch.dtype, source: torch.Generator, share: float = 0.5
) -> Tensor:
    """1 with the probability `share`, else 0."""
    return (_shares(count, torch.float64, source) < share).to(dtype)


def exponential(count: int, dtype: torch.dtype, source: torch.Generator, rate: float = 1) -> Tensor:
    """Exponential numbers of mean 1 / rate."""
    return _of_uniform(lambda each: -1.0 / rate * log1p(-each), count, dtype, source)


def cauchy(
    count: int, dtype: torch.dtype, source: torch.Generator, median: float = 0, sigma: float = 1
) -> Tensor:
    """Numbers of Cauchy's distribution."""

    def of(each: Array) -> Array:
        cosine, sine = cosine_and_sine(pi * (each - 0.5))
        return median + sigma * (sine / cosine)

    return _of_uniform(of, count, dtype, source)


def geometric(count: int, dtype: torch.dtype, source: torch.Generator, share: float) -> Tensor:
    """The number of trials up to the first success, each of probability `share`."""
    scale = log1p(np.array([-share]))[0]
    return _of_uniform(lambda each: np.ceil(log(each) / scale), count, dtype, source)


def log_normal(
    count: int, dtype: torch.dtype, source: torch.Generator, mean: float = 1, std: float = 2
) -> Tensor:
    """Numbers whose logarithm is normal."""
    return _as_type(exp(_normal_pairs(count, source) * std + mean), dtype)


DRAWS: dict[str, Draw] = {
    "normal_": normal,
    "uniform_": uniform,
    "bernoulli_.float": bernoulli,
    "exponential_": exponential,
    "log_normal_": log_normal,
    "cauchy_": cauchy,
    "geometric_": geometric,
}
"""The distributions by the names of PyTorch's operators."""


def _shares(count: int, dtype: torch.dtype, source: torch.Generator) -> Tensor:
    """Numbers in [0, 1) as PyTorch draws them: integers times a power of 2."""
    bits, integers = _BITS[dtype]
    drawn = torch.empty(count, dtype=integers).random_(0, 1 << bits, generator=source)
    return drawn.to(dtype) * 2.0**-bits


def _of_uniform(
    function: Callable[[Array], Array], count: int, dtype: torch.dtype, source: torch.Generator
) -> Tensor:
    drawn = _shares(count, torch.float64, source).numpy()
    numbers = torch.empty(count, dtype=dtype)
    for start in range(0, count, _AT_ONCE):
        stop = start + _AT_ONCE
        numbers[start:stop] = _as_type(function(drawn[start:stop]), dtype)
    return numbers


def _normal_vectors(drawn: Tensor, mean: float, std: float) -> Tensor:
    """Normal numbers of uniform ones, in place of each 16: the first 8 are radii."""
    dtype, rows = drawn.dtype, _wide(drawn).reshape(-1, 2, _HALF)
    radius = _rounded(
        np.sqrt(_rounded(-2.0 * _rounded(log(1.0 - rows[:, 0]), dtype), dtype)), dtype
    )
    turns = cosine_and_sine(_rounded(2.0 * pi * rows[:, 1], dtype))
    scale, shift = (_wide(torch.tensor(each, dtype=dtype)) for each in (std, mean))
    chosen = np.empty_like(rows)
    for half, turn in enumerate(turns):
        one = _rounded(radius * _rounded(turn, dtype), dtype)
        chosen[:, half] = _rounded(one * scale, dtype) + shift
    return _as_type(chosen.reshape(-1), dtype)


def _normal_pairs(count: int, source: torch.Generator) -> Array:
    """Normal numbers of float64 in pairs; the generator keeps the second number of a last pair."""
    values = np.empty(count)
    if not count:
        return values
    state = source.get_state()
    kept = int(state[_NORMAL_IS_KEPT])
    if kept:
        values[0] = state.view(torch.float64)[_NORMAL]
    pairs = -(-(count - kept) // 2)
    drawn = _shares(2 * pairs, torch.float64, source).numpy().reshape(-1, 2)
    radius = np.sqrt(-2.0 * log1p(-drawn[:, 1]))
    both = np.stack([radius * each for each in cosine_and_sine(2.0 * pi * drawn[:, 0])], axis=1)
    numbers = both.reshape(-1)
    values[kept:] = numbers[: count - kept]
    _keep(source, float(numbers[-1]) if (count - kept) % 2 else None)
    return values


def _keep(source: torch.Generator, number: float | None) -> None:
    """Let the generator begin the next pairs with a number, or with none."""
    state = source.get_state()
    state.view(torch.float64)[_NORMAL] = 0.0 if number is None else number
    state[_NORMAL_IS_KEPT] = number is not None
    source.set_state(state)


def _drawn_in(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def _part(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.complex128 else torch.float32


def _complex(parts: Tensor) -> Tensor:
    return torch.view_as_complex(parts.view(-1, 2))


def _wide(x: Tensor) -> Array:
    return x.double().numpy()


def _rounded(x: Array, dtype: torch.dtype) -> Array:
    """Float64 with the values of an element type."""
    if dtype == torch.float32:
        return x.astype(np.float32).astype(np.float64)
    return x if dtype == torch.float64 else _wide(from_numpy(x).to(dtype))


def _as_type(x: Array, dtype: torch.dtype) -> Tensor:
    return from_numpy(np.ascontiguousarray(x)).to(dtype)
