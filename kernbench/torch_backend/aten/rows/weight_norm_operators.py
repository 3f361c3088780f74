"""Weight normalisation: a direction, and its length for each index of an axis (T. Salimans,
D. P. Kingma, "Weight normalization", 2016).
"""

import torch

from kernbench.torch_backend.aten.operators import operator


@operator("_weight_norm_interface")
def _weight_norm(
    v: torch.Tensor, g: torch.Tensor, dim: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    norms = torch.linalg.vector_norm(v, dim=_others(v, dim), keepdim=True)
    return v * (g / norms), norms


@operator("_weight_norm_interface_backward")
def _weight_norm_backward(
    grad: torch.Tensor, v: torch.Tensor, g: torch.Tensor, norms: torch.Tensor, dim: int
) -> tuple[torch.Tensor, torch.Tensor]:
    # The length of the gradient along the direction.
    along = (grad * v).sum(_others(v, dim), keepdim=True) / norms
    return (g / norms) * (grad - v * (along / norms)), along


def _others(v: torch.Tensor, dim: int) -> list[int]:
    return [axis for axis in range(v.dim()) if axis != dim % v.dim()]
