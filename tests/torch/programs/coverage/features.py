"""The features of the coverage table: functions by theme and name.

A feature is a piece of a script as users write them, for the device and the ranks on which it runs.
It returns what must equal the same on a CPU.
"""

from collections.abc import Callable, Sequence

import torch

Feature = Callable[[str], Sequence[torch.Tensor]]

FEATURES: dict[str, dict[str, Feature]] = {}
"""Features by theme, and by the name in the table."""


def feature(theme: str, name: str) -> Callable[[Feature], Feature]:
    """Add a function to a theme."""

    def add(function: Feature) -> Feature:
        FEATURES.setdefault(theme, {})[name] = function
        return function

    return add


def parameters(model: torch.nn.Module) -> list[torch.Tensor]:
    """The parameters of a model, as results."""
    return [each.detach() for each in model.parameters()]


def gradients(model: torch.nn.Module) -> list[torch.Tensor]:
    """The gradients of a model, as results."""
    return [each.grad for each in model.parameters() if each.grad is not None]


def random(*shape: int, seed: int = 1) -> torch.Tensor:
    """Normal numbers on the host, the same in every run."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def numbers(limit: int, *shape: int, seed: int = 1) -> torch.Tensor:
    """Integers below a limit on the host, the same in every run."""
    return torch.randint(limit, shape, generator=torch.Generator().manual_seed(seed))
