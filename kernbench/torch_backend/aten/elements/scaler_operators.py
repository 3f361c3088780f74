"""What `GradScaler` calls: divides gradients by the scale, checks them, and updates the scale."""

from collections.abc import Sequence

import torch

from kernbench.torch_backend.aten.operators import operator


@operator("_amp_foreach_non_finite_check_and_unscale_")
def _unscale(
    gradients: Sequence[torch.Tensor], found_inf: torch.Tensor, inverse: torch.Tensor
) -> None:
    for each in gradients:
        # The difference of an element with itself is 0, or NaN if it is not finite.
        is_infinite = ((each - each) != 0).any()
        found_inf.copy_(torch.maximum(found_inf, is_infinite.to(found_inf.dtype)))
        each.mul_(inverse)


@operator("_amp_update_scale_", types=None)
def _update_scale(
    scale: torch.Tensor,
    growth: torch.Tensor,
    found_inf: torch.Tensor,
    growth_factor: float,
    backoff_factor: float,
    interval: int,
) -> torch.Tensor:
    is_infinite, following = found_inf > 0, growth + 1
    is_grown = following == interval
    grown = torch.where(is_grown, scale * growth_factor, scale)
    scale.copy_(torch.where(is_infinite, scale * backoff_factor, grown))
    growth.copy_(torch.where(is_infinite | is_grown, 0, following))
    return scale
