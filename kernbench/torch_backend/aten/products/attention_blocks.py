"""The blocks of attention and of its gradient: their sizes, and how they are dealt over the PEs.

Blocks of queries, or of keys, are dealt over the PEs: each head to equal numbers of PEs, where
heads are fewer than PEs, so that with a causal mask their work is nearly equal.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from kernbench.torch_backend.launching.launches import (
    launch_copies,
    launch_pointwise_each,
    longest_kept,
)
from kernbench.torch_backend.runtime.storages import storages
from runtime.device.kernels.attention.flash import BlockShape
from runtime.device.regions.regions import Pe
from runtime.language.value import Value

_ROWS, _WIDTH = (64, 32, 16), 320
"""The queries of a block, of which the greatest number that occupies all PEs is chosen, and most of
its keys.
"""
_RESERVED_BYTES = 1 << 14
"""Scratch that the alignment of values may take."""


class AttentionCall(NamedTuple):
    """Properties of an attention besides its operands."""

    is_causal: bool
    scale: float
    enable_gqa: bool


class ScratchBytes(NamedTuple):
    """The scratch for each row of a block, for each element of the other axis, for each score."""

    of_row: int
    of_column: int
    of_score: int

    @classmethod
    def of_attention(cls, q: Tensor, mask: Tensor | None) -> "ScratchBytes":
        """The arguments of the flash loop (`runtime.device.kernels.attention.flash`)."""
        depth, size = q.shape[-1], q.itemsize
        return cls(
            of_row=3 * depth * size + 12 * (depth + 2) + 16,
            of_column=6 * depth * size + size,
            of_score=12 + 2 * size + (0 if mask is None else 3 * mask.itemsize),
        )

    @classmethod
    def of_gradient(
        cls, q: Tensor, mask: Tensor | None, *, held: int, results: int
    ) -> "ScratchBytes":
        """The arguments of the loop of the gradient, which holds a number of operands."""
        depth, size = q.shape[-1], q.itemsize
        return cls(
            of_row=(2 * held + results) * depth * size + 8 * results * depth + 40,
            of_column=8 * depth * size + 40,
            of_score=16 + 2 * results * size + (0 if mask is None else 3 * mask.itemsize),
        )


def block_shape(
    heads: int, length: int, others: int, depth: int, scratch: ScratchBytes
) -> BlockShape | None:
    """The blocks of the scores of `length` rows, beside `others` in the other axis; None where none
    fits the scratch.
    """
    topology, usable = storages().state.topology, storages().state.pes
    pes = usable.cubes * usable.per_cube
    most = next(
        (each for each in _ROWS if each <= length and heads * length >= each * pes),
        min(length, _ROWS[-1]),
    )
    for rows in dict.fromkeys((most, *(each for each in _ROWS if each < most))):
        # A causal mask is a block of scores in float32.
        besides = _RESERVED_BYTES + 4 * rows * rows + rows * scratch.of_row
        left = topology.kernel_scratch_bytes - besides
        width = left // (scratch.of_column + rows * scratch.of_score) // rows * rows
        most_columns = min(_WIDTH, longest_kept(2))
        width = min(width, max(most_columns // rows, 1) * rows, -(-others // rows) * rows)
        if width > 0:
            return BlockShape(rows, width, depth)
    return None


class HeadRows(NamedTuple):
    """Rows of a head, and the place of its PE among the `shares` with this head."""

    head: int
    start: int
    rows: int
    share: int
    shares: int


def dealt(heads: int, length: int, rows: int, *, is_causal: bool) -> dict[Pe, list[HeadRows]]:
    """The blocks of each PE, of nearly equal work."""
    usable = storages().state.pes
    pes = usable.cubes * usable.per_cube
    starts = range(0, length, rows)
    blocks_of: dict[int, list[tuple[int, int]]] = {}
    # Whole heads, as many as PEs, while there are; each of the others over several PEs.
    whole = heads // pes * pes
    for head in range(whole):
        blocks_of.setdefault(head % pes, []).extend((head, start) for start in starts)
    shares = min(pes // (heads - whole), len(starts)) if heads > whole else 1
    for head in range(whole, heads):
        first = (head - whole) * shares
        for number, start in enumerate(reversed(starts)):
            # There and back again: with a causal mask the later blocks have more keys.
            turn, place = divmod(number, shares)
            side = shares - 1 - place if turn % 2 and is_causal else place
            blocks_of.setdefault(first + side, []).append((head, start))
    return {
        usable.at(pe): [
            HeadRows(head, start, min(rows, length - start), pe % shares, shares)
            for head, start in blocks
        ]
        for pe, blocks in sorted(blocks_of.items())
    }


def with_rows(tensor: Tensor) -> Tensor:
    """A tensor of (batch, head, token, element) whose tokens are contiguous and apart, copied
    where they are not.
    """
    depth = tensor.shape[3]
    has_rows = depth == 1 or tensor.stride(3) == 1
    are_apart = tensor.shape[2] == 1 or tensor.stride(2) >= depth
    return (tensor if has_rows and are_apart else tensor.contiguous()).detach()


def pitch(tensor: Tensor) -> int:
    """The distance of the tokens of a tensor."""
    return tensor.stride(2) if tensor.shape[2] > 1 else tensor.shape[3]


def place(tensor: Tensor, batch: int, head: int, token: int) -> int:
    """The number of the first element of a token in memory."""
    return batch * tensor.stride(0) + head * tensor.stride(1) + token * tensor.stride(2)


_BLOCKS, _TOKENS = 4, 512
"""The blocks of a head that read a tensor, and its tokens, from which on a copy takes less time
than it saves.
"""


def by_heads(tensors: Sequence[Tensor], heads: int, blocks: int) -> list[Tensor]:
    """The tensors of (batch, head, token, element), of which each head is read by a number of
    blocks: copies with `heads` heads where these save time.
    """
    packed, copies = list[Tensor](), list[tuple[Tensor, Tensor]]()
    for each in tensors:
        batches, groups, tokens, depth = each.shape
        is_placed = groups == heads and each.is_contiguous()
        if is_placed or blocks < _BLOCKS or tokens < _TOKENS:
            packed.append(with_rows(each))
            continue
        own = torch.empty((batches, heads, tokens, depth), dtype=each.dtype, device=each.device)
        shape = (batches, groups, heads // groups, tokens, depth)
        copies.append((own.view(shape), each.detach().unsqueeze(2).expand(shape)))
        packed.append(own)
    if copies:
        launch_copies("scaled_dot_product_attention_by_heads", copies)
    return packed


def sum_groups(results: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
    """Write to each target the sum of a result over the heads of each group."""
    sums = list[tuple[Tensor, list[Tensor]]]()
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
