"""Copies of the operands of attention in the order of heads.

All PEs with a head read its keys and values again for each block of queries. Where heads are
neighbours in each token, or share keys in groups, these lie on other cubes, whose links bind. A
copy has the keys of each head on the PEs with that head: it reads them through the links once.
"""

from collections.abc import Sequence

import torch

from kernbench.torch_backend.aten.products.attention_blocks import with_rows
from kernbench.torch_backend.launching.launches import launch_copies, launch_pointwise_each
from runtime.language.value import Value

_BLOCKS, _TOKENS = 4, 512
"""The blocks of a head that read a tensor, and its tokens, from which on a copy takes less time
than it saves.
"""


def by_heads(tensors: Sequence[torch.Tensor], heads: int, blocks: int) -> list[torch.Tensor]:
    """The tensors of (batch, head, token, element), of which each head is read by a number of
    blocks: copies with `heads` heads where these save time.
    """
    found, copies = list[torch.Tensor](), list[tuple[torch.Tensor, torch.Tensor]]()
    for each in tensors:
        batches, groups, tokens, depth = each.shape
        is_placed = groups == heads and each.is_contiguous()
        if is_placed or blocks < _BLOCKS or tokens < _TOKENS:
            found.append(with_rows(each))
            continue
        own = torch.empty((batches, heads, tokens, depth), dtype=each.dtype, device=each.device)
        shape = (batches, groups, heads // groups, tokens, depth)
        copies.append((own.view(shape), each.detach().unsqueeze(2).expand(shape)))
        found.append(own)
    if copies:
        launch_copies("scaled_dot_product_attention_by_heads", copies)
    return found


def sum_groups(results: Sequence[torch.Tensor], targets: Sequence[torch.Tensor]) -> None:
    """Write to each target the sum of a result over the heads of each group."""
    sums = list[tuple[torch.Tensor, list[torch.Tensor]]]()
    for result, target in zip(results, targets, strict=True):
        batches, groups, tokens, depth = target.shape
        parts = result.view(batches, groups, -1, tokens, depth)
        sums.append((target, list(parts.unbind(2))))
    launch_pointwise_each("scaled_dot_product_attention_groups", _sum, sums, torch.float32)


def _sum(first: Value, *others: Value) -> Value:
    total = first
    for each in others:
        total = total + each
    return total
