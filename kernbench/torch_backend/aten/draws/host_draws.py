"""Numbers that a script draws on the host, such as weights of a model that moves to the device
later: normal and uniform ones are made by `draws`, so they are the same on every processor.

PyTorch has code for each vector unit for these two distributions; its code for the others has one
number at a time.
"""

import warnings

import torch
from torch import Tensor

from kernbench.torch_backend.aten.draws.distributions import normal, normal_one_by_one, uniform
from kernbench.torch_backend.runtime.pytorch_api import implement


def register_host_draws(library: torch.library.Library) -> None:
    """Replace the draws of PyTorch, in the process of a rank."""
    with warnings.catch_warnings():
        # PyTorch warns of each kernel that replaces one of its own.
        warnings.simplefilter("ignore")
        implement(library, "normal_", _normal, "CPU")
        implement(library, "uniform_", _uniform, "CPU")


def _normal(
    x: Tensor, mean: float = 0, std: float = 1, *, generator: torch.Generator | None = None
) -> Tensor:
    _check_type("normal_kernel_cpu", x)
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    # As PyTorch draws them.
    draw = normal if x.is_contiguous() or x.is_complex() else normal_one_by_one
    return _written(x, draw(x.numel(), x.dtype, _source(generator), mean, std))


def _uniform(
    x: Tensor, low: float = 0, high: float = 1, *, generator: torch.Generator | None = None
) -> Tensor:
    _check_type("check_uniform_bounds", x)
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}"
        )
    return _written(x, uniform(x.numel(), x.dtype, _source(generator), low, high))


def _check_type(operator: str, x: Tensor) -> None:
    if not (x.is_floating_point() or x.is_complex()):
        raise NotImplementedError(f'"{operator}" not implemented for {x.dtype}')


def _source(generator: torch.Generator | None) -> torch.Generator:
    return torch.default_generator if generator is None else generator


def _written(x: Tensor, numbers: Tensor) -> Tensor:
    """Write numbers to a tensor, as PyTorch does in the order of memory."""
    axes = range(x.dim())
    in_memory = x.permute(sorted(axes, key=lambda axis: -x.stride(axis)))
    in_memory.copy_(numbers.view(in_memory.shape))
    return x
