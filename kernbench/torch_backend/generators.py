"""The random numbers of the device: drawn on the host, and written to the device.

A generator of the device has the sequence of PyTorch's generator for CPUs. So a program that draws
everything on the device has, for equal seeds, the numbers of the same program on a CPU.
"""

from functools import cache
from typing import Any

import torch

from kernbench.torch_backend.operators import DEVICE, operator


@cache
def device_generator() -> torch.Generator:
    """The generator of this rank's device, which is seeded like that of the CPU."""
    return torch.Generator(device=DEVICE).manual_seed(torch.initial_seed())


def _in_place(name: str) -> None:
    packet, _, overload = name.partition(".")
    draw = getattr(getattr(torch.ops.aten, packet), overload or "default")

    @operator(name, types=None)
    def drawn(
        x: torch.Tensor, *arguments: Any, generator: torch.Generator | None = None, **options: Any
    ) -> torch.Tensor:
        own = device_generator() if generator is None else generator
        source = torch.Generator()
        source.set_state(own.get_state())
        host = torch.empty(x.shape, dtype=x.dtype)
        draw(host, *arguments, generator=source, **options)
        own.set_state(source.get_state())
        return x.copy_(host)

    del drawn


for _name in (
    *("normal_", "uniform_", "bernoulli_.float", "exponential_", "log_normal_", "cauchy_"),
    *("random_", "random_.to", "random_.from", "geometric_"),
):
    _in_place(_name)


@operator("native_dropout")
def _dropout(
    x: torch.Tensor,
    p: float,
    train: bool | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    if train is False:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    # As the operator of the CPU draws it.
    kept = torch.empty_like(x).bernoulli_(1 - p).bool()
    return x * kept / (1 - p), kept


@operator("native_dropout_backward")
def _dropout_backward(grad: torch.Tensor, kept: torch.Tensor, scale: float) -> torch.Tensor:
    return grad * kept * scale
