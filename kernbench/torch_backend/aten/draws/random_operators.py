"""The random numbers of the device: drawn on the host, and written to the device.

The generator has the sequence of PyTorch's generator for CPUs. So a program that draws
everything on the device has, for equal seeds, the numbers of the same program on a CPU, up to the
last bits of numbers with a logarithm or a sine: those of the device are the same on every CPU
(`draws`).

Its state is what PyTorch's DTensor and checkpointing take: 16 bytes, a seed and an offset. The
offset counts elements, rounded up to multiples of 4 for each draw. A state that was read before
continues its sequence; any other one begins a sequence of its own, which its numbers determine.
"""

from collections import OrderedDict
from functools import cache
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.draws.distributions import DRAWS, Draw
from kernbench.torch_backend.aten.operators import (
    DEVICE,
    DRAWN,
    compute_on_host,
    host_time,
    operator,
)
from kernbench.torch_backend.runtime.element_types import computed_in
from kernbench.torch_backend.runtime.pytorch_api import broadcast_shapes, integers

_STATES_KEPT = 4096
_MASK = (1 << 63) - 1
_MIX = 0x9E3779B97F4A7C15
"""An odd multiplier, which spreads the bits of an offset (2^64 / golden ratio)."""


class DeviceRandom:
    """The generator of this rank's device, which is seeded like that of the CPU."""

    def __init__(self, seed: int) -> None:
        self._known: OrderedDict[tuple[int, int], Tensor] = OrderedDict()
        self._source = torch.Generator()
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Begin the sequence of a seed."""
        self._source.manual_seed(seed)
        self._seed, self._offset = seed & _MASK, 0

    @property
    def initial_seed(self) -> int:
        """The seed with which the sequence has begun."""
        return self._seed

    def state(self) -> Tensor:
        """Seed and offset, as 16 bytes."""
        here = (self._seed, self._offset)
        self._known[here] = self._source.get_state()
        while len(self._known) > _STATES_KEPT:
            self._known.popitem(last=False)
        return torch.tensor(here, dtype=torch.int64).view(torch.uint8).clone()

    def restore(self, state: Tensor) -> None:
        """Continue from a state."""
        self._seed, self._offset = integers(state.cpu().view(torch.int64))
        known = self._known.get((self._seed, self._offset))
        if known is None:
            self._source.manual_seed((self._seed + self._offset * _MIX) & _MASK)
        else:
            self._source.set_state(known)

    def drawing(self, numel: int) -> torch.Generator:
        """The generator for a draw of `numel` elements."""
        self._offset += -(-numel // 4) * 4
        return self._source


@cache
def device_random() -> DeviceRandom:
    """The generator of this rank's device."""
    return DeviceRandom(torch.initial_seed())


def _in_place(name: str, distribution: Draw | None) -> None:
    packet, _, overload = name.partition(".")
    draw = getattr(getattr(torch.ops.aten, packet), overload or "default")

    def drawn(x: Tensor, source: torch.Generator, *arguments: Any, **options: Any) -> Tensor:
        if distribution is None:
            return draw(
                torch.empty(x.shape, dtype=x.dtype), *arguments, generator=source, **options
            )
        # The errors of PyTorch for wrong parameters; no number is drawn.
        draw(torch.empty(0, dtype=x.dtype), *arguments, generator=source, **options)
        numbers = distribution(x.numel(), x.dtype, source, *map(float, arguments), **options)
        return numbers.view(x.shape)

    @operator(name, types=None)
    def in_place(
        x: Tensor, *arguments: Any, generator: torch.Generator | None = None, **options: Any
    ) -> Tensor:
        if generator is None:
            host = drawn(x, device_random().drawing(x.numel()), *arguments, **options)
        else:
            # A generator that the program made for the device.
            source = torch.Generator()
            source.set_state(generator.get_state())
            host = drawn(x, source, *arguments, **options)
            generator.set_state(source.get_state())
        return _written(packet, host, x)

    del in_place


for _name, _distribution in DRAWS.items():
    _in_place(_name, _distribution)
for _name in ("random_", "random_.to", "random_.from"):
    # Integers, which PyTorch draws alike on every CPU.
    _in_place(_name, None)


@operator("bernoulli_.Tensor")
def _bernoulli_of_each(
    x: Tensor, shares: Tensor, *, generator: torch.Generator | None = None
) -> Tensor:
    if not shares.is_floating_point():
        return NotImplemented
    wide = torch.float64 if shares.dtype == torch.float64 else torch.float32
    drawn = torch.empty(x.shape, dtype=wide, device=x.device).uniform_(generator=generator)
    return x.copy_(drawn < shares.to(x.device))


@operator("normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor")
def _normal_of_each(
    mean: Tensor | float, std: Tensor | float = 1, *, generator: torch.Generator | None = None
) -> Any:
    """Standard normal numbers, scaled and moved, as PyTorch draws them."""
    given = [each for each in (mean, std) if isinstance(each, Tensor)]
    if any(each.is_complex() or each.device.type != DEVICE for each in given):
        return NotImplemented
    if isinstance(std, Tensor) and std.numel() and bool((std < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    shape = broadcast_shapes(*(each.shape for each in given))
    drawn = torch.empty(shape, dtype=given[0].dtype, device=DEVICE)
    if isinstance(std, Tensor):
        return drawn.normal_(generator=generator) * std + mean
    return drawn.normal_(0, std, generator=generator) + mean


@operator("native_dropout")
def _dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    if train is False:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    # As the operator of the CPU draws it.
    kept = torch.empty_like(x).bernoulli_(1 - p).bool()
    return x * kept / (1 - p), kept


@operator("native_dropout_backward")
def _dropout_backward(grad: Tensor, kept: Tensor, scale: float) -> Tensor:
    return grad * kept * scale


@operator("rrelu_with_noise")
def _rrelu(
    x: Tensor,
    noise: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    if not training:
        return torch.where(x > 0, x, x * ((lower + upper) / 2))
    # A number for each element that is bent, in float64, as the operator of the CPU draws them.
    is_bent = x <= 0
    count = int(is_bent.sum().item())
    drawn = torch.empty(count, dtype=torch.float64, device=x.device)
    drawn.uniform_(lower, upper, generator=generator)
    slopes = torch.ones(x.shape, dtype=computed_in(x.dtype), device=x.device)
    slopes.masked_scatter_(is_bent, drawn.to(slopes.dtype))
    noise.copy_(slopes)
    return (x * slopes).to(x.dtype)


@operator("rrelu_with_noise_")
def _rrelu_in_place(x: Tensor, *given: Any, **options: Any) -> Tensor:
    return x.copy_(_rrelu(x, *given, **options))


@operator("randperm.generator_out", types=None)
def _randperm(count: int, *, generator: torch.Generator | None = None, out: Tensor) -> Tensor:
    source = device_random().drawing(count) if generator is None else generator
    if source.device.type == DEVICE:
        return NotImplemented
    host = torch.randperm(count, generator=source, dtype=out.dtype)
    return _written("randperm", host, out.resize_(count))


def _written(name: str, host: Tensor, out: Tensor) -> Tensor:
    DRAWN[name] += 1
    with host_time(draws=True):
        compute_on_host(name, host.numel())
        return out.copy_(host)


_MOST_COMPARED = 1 << 24
"""Comparisons of samples with running sums."""


@operator("multinomial")
def _multinomial(
    x: Tensor, count: int, replacement: bool = False, *, generator: torch.Generator | None = None
) -> Any:
    if not x.is_floating_point() or x.numel() * count > _MOST_COMPARED:
        return NotImplemented
    _check(x, count, replacement=replacement)
    if count > 1 and replacement:
        return _with_replacement(x, count, generator)
    # The greatest of p / q, where q is an exponential number, is element i with probability p_i.
    chosen = x / torch.empty_like(x).exponential_(1, generator=generator)
    return chosen.argmax(-1, keepdim=True) if count == 1 else chosen.topk(count)[1]


def _check(x: Tensor, count: int, *, replacement: bool) -> None:
    """The errors of PyTorch: the host reads two numbers."""
    if not 0 < x.dim() <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and count > x.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if not bool(((x.max() < torch.inf) & (x.min() >= 0)).item()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if bool((x.sum(-1) == 0).any().item()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def _with_replacement(x: Tensor, count: int, generator: torch.Generator | None) -> Tensor:
    """The first element whose running sum reaches a number that is drawn for each sample."""
    drawn = torch.empty((*x.shape[:-1], count), dtype=torch.float64, device=x.device)
    drawn.uniform_(generator=generator)
    sums = x.cumsum(-1)
    shares = (sums / sums[..., -1:]).to(torch.float64)
    below = shares[..., None, :-1] < drawn[..., None]
    return below.sum(-1)
