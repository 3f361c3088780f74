"""Samples of rows of probabilities: the numbers are drawn as a CPU draws them, on the host; the
device chooses by them.
"""

from typing import Any

import torch

from kernbench.torch_backend.aten.operators import operator

_MOST_COMPARED = 1 << 24
"""Comparisons of samples with running sums."""


@operator("multinomial")
def _multinomial(
    x: torch.Tensor,
    count: int,
    replacement: bool = False,
    *,
    generator: torch.Generator | None = None,
) -> Any:
    if not x.is_floating_point() or x.numel() * count > _MOST_COMPARED:
        return NotImplemented
    _check(x, count, replacement=replacement)
    if count > 1 and replacement:
        return _with_replacement(x, count, generator)
    # The greatest of p / q, where q is an exponential number, is element i with probability p_i.
    chosen = x / torch.empty_like(x).exponential_(1, generator=generator)
    return chosen.argmax(-1, keepdim=True) if count == 1 else chosen.topk(count)[1]


def _check(x: torch.Tensor, count: int, *, replacement: bool) -> None:
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


def _with_replacement(
    x: torch.Tensor, count: int, generator: torch.Generator | None
) -> torch.Tensor:
    """The first element whose running sum reaches a number that is drawn for each sample."""
    drawn = torch.empty((*x.shape[:-1], count), dtype=torch.float64, device=x.device)
    drawn.uniform_(generator=generator)
    sums = x.cumsum(-1)
    shares = (sums / sums[..., -1:]).to(torch.float64)
    below = shares[..., None, :-1] < drawn[..., None]
    return below.sum(-1)
