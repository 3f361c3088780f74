"""Embedding bags: for each bag of indices the sum, mean or greatest elements of rows of a table.

The host reads the indices: a kernel sums rows whose numbers it is given.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.indexing.index_operators import SUMMED, positions_of, sum_rows
from kernbench.torch_backend.aten.indexing.scatter_operators import expanded_along
from kernbench.torch_backend.aten.operators import DEVICE, operator
from kernbench.torch_backend.runtime.pytorch_api import integers

_SUM, _MEAN, _MAX = 0, 1, 2


@operator("_embedding_bag", "_embedding_bag_forward_only", types=None)
def _embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    if scale_grad_by_freq or sparse or weight.dtype not in SUMMED:
        return NotImplemented
    named, starts = integers(indices), integers(offsets)
    if starts and starts[0]:
        return NotImplemented
    ends = [*starts[1:], *([] if include_last_offset else [len(named)])]
    bags = [
        [place for place in range(start, end) if named[place] != padding_idx]
        for start, end in zip(starts, ends, strict=False)
    ]
    # Every index is checked, also that of padding.
    positions_of(indices, weight.shape[0])
    sizes = [len(bag) for bag in bags]
    spans = enumerate(zip(starts, ends, strict=False))
    bag_of = [number for number, (start, end) in spans for _ in range(start, end)]
    listed = [torch.tensor(each, dtype=indices.dtype).to(DEVICE) for each in (bag_of, sizes)]
    if mode == _MAX:
        places = [(number, place) for number, bag in enumerate(bags) for place in bag]
        out, greatest = _greatest(weight, indices, places, len(bags))
        return out, *listed, greatest
    out = torch.zeros((len(bags), weight.shape[1]), dtype=weight.dtype, device=DEVICE)
    if per_sample_weights is None:
        source, rows = weight.contiguous(), [[named[place] for place in bag] for bag in bags]
    else:
        source, rows = weight[indices] * per_sample_weights.unsqueeze(1), bags
    sum_rows(out, source, [(number, bag) for number, bag in enumerate(rows) if bag])
    if mode == _MEAN:
        out /= torch.tensor(sizes, dtype=out.dtype).clamp(min=1).to(DEVICE).unsqueeze(1)
    return out, *listed, torch.zeros_like(listed[1])


def _greatest(
    weight: Tensor, indices: Tensor, places: Sequence[tuple[int, int]], count: int
) -> tuple[Tensor, Tensor]:
    """The greatest elements of the rows of each of `count` bags, and the rows of the first ones;
    `places` are those of the indices, each with its bag.
    """
    shape = (count, weight.shape[1])
    out = torch.zeros(shape, dtype=weight.dtype, device=DEVICE)
    greatest = torch.zeros(shape, dtype=indices.dtype, device=DEVICE)
    if not places:
        return out, greatest
    bag_of, chosen = torch.tensor(places).to(DEVICE).unbind(1)
    named = indices[chosen]
    rows = weight[named]
    columns = expanded_along(bag_of, rows.shape, 0)
    out = out.scatter_reduce(0, columns, rows, "amax", include_self=False)
    numbers = torch.arange(len(places), device=DEVICE).unsqueeze(1)
    numbers = torch.where(rows == out[bag_of], numbers, len(places))
    first = torch.zeros(shape, dtype=torch.int64, device=DEVICE).scatter_reduce(
        0, columns, numbers, "amin", include_self=False
    )
    is_empty = torch.ones(count, dtype=torch.bool, device=DEVICE).index_fill(0, bag_of, False)
    return out, torch.where(is_empty.unsqueeze(1), greatest, named[first.clamp(max=len(named) - 1)])


@operator("_embedding_bag_backward", types=None)
def _embedding_bag_backward(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    bag_of: Tensor,
    sizes: Tensor,
    greatest: Tensor,
    count: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Any:
    del offsets
    if scale_grad_by_freq or sparse or grad.dtype not in SUMMED:
        return NotImplemented
    if mode == _MAX:
        slopes = torch.where(sizes.unsqueeze(1) > 0, grad, 0.0)
        out = torch.zeros((count, grad.shape[1]), dtype=grad.dtype, device=DEVICE)
        return out.scatter_add(0, greatest.to(torch.int64), slopes)
    source = grad.contiguous()
    if mode == _MEAN:
        source = source / sizes.clamp(min=1).to(grad.dtype).unsqueeze(1)
    places = positions_of(indices, count)
    places.pop(padding_idx, None)
    if per_sample_weights is None:
        bags = integers(bag_of)
        places = {row: [bags[place] for place in listed] for row, listed in places.items()}
    else:
        source = source[bag_of] * per_sample_weights.unsqueeze(1)
    out = torch.zeros((count, grad.shape[1]), dtype=grad.dtype, device=DEVICE)
    sum_rows(out, source, sorted(places.items()))
    return out


@operator("_embedding_bag_per_sample_weights_backward", types=None)
def _weights_backward(
    grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    bag_of: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Any:
    del offsets
    if mode != _SUM or not indices.numel():
        return NotImplemented
    slopes = (grad[bag_of] * weight[indices]).sum(1)
    return torch.where(indices == padding_idx, 0.0, slopes)
