"""Launches of the gradient of attention: of queries, then of keys and values."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.products.attention_blocks import (
    AttentionCall,
    HeadRows,
    ScratchBytes,
    block_shape,
    by_heads,
    dealt,
    pitch,
    place,
    sum_groups,
    with_rows,
)
from kernbench.torch_backend.launching.launches import launched, pointer_of, window_of
from runtime.core.requests import PerPe
from runtime.device.kernels.attention.attention_gradient import (
    gradient_of_keys,
    gradient_of_queries,
)
from runtime.device.kernels.attention.flash import BlockShape
from runtime.device.kernels.attention.gradient_loop import (
    GradientOperands,
    GradientScores,
    HeldBlock,
    Passing,
    Rows,
)
from runtime.device.kernels.attention.score_mask import ScoreMask

_NAME = "scaled_dot_product_attention_backward"


def has_gradient_kernels(q: Tensor, k: Tensor, mask: Tensor | None) -> bool:
    """Whether the blocks of both kernels fit the scratch."""
    return all(_blocks(q, k, mask, of_keys=each) is not None for each in (False, True))


def gradients(
    operands: Sequence[Tensor], mask: Tensor | None, statistics: Tensor, options: AttentionCall
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of q, k and v, from q, k, v, the result and its gradient; `statistics` are
    those which the forward pass has stored.
    """
    call = _GradientCall(operands, mask, statistics, options)
    return call.of_queries(), *call.of_keys()


class _GradientCall:
    """Both launches of one gradient."""

    def __init__(
        self,
        operands: Sequence[Tensor],
        mask: Tensor | None,
        statistics: Tensor,
        options: AttentionCall,
    ) -> None:
        q, k, v, out, grad = operands
        self._mask, self._statistics, self._options = mask, statistics, options
        self._given = k, v
        heads, queries = q.shape[1:3]
        # Whichever sequence passes is read by each block of the other one.
        self._of_queries = _known(_blocks(q, k, mask, of_keys=False))
        self._k, self._v = by_heads((k, v), heads, -(-queries // self._of_queries.rows))
        self._of_keys = _known(_blocks(q, self._k, mask, of_keys=True))
        self._q, self._grad = by_heads((q, grad), heads, -(-k.shape[2] // self._of_keys.rows))
        self._out = with_rows(out)
        self._group = heads // self._k.shape[1]

    def of_queries(self) -> Tensor:
        """Delta, and the gradient of q."""
        result = _result(self._q)
        batches, heads, queries, _ = self._q.shape
        shape = self._of_queries
        blocks = dealt(batches * heads, queries, shape.rows, is_causal=self._options.is_causal)
        held = (self._q, self._grad, self._out)
        self._launch(
            gradient_of_queries,
            {
                pe: _grouped(
                    shape, ((each, self._queries_of(each, held, result)) for each in given)
                )
                for pe, given in blocks.items()
            },
            (held, (self._k, self._v), (result,)),
        )
        return result

    def of_keys(self) -> tuple[Tensor, Tensor]:
        """The gradients of k and v."""
        results = _result(self._k), _result(self._v)
        batches, groups, keys, _ = self._k.shape
        shape = self._of_keys
        blocks = dealt(batches * groups, keys, shape.rows, is_causal=self._options.is_causal)
        self._launch(
            gradient_of_keys,
            {
                pe: _grouped(shape, ((each, self._keys_of(each, results)) for each in given))
                for pe, given in blocks.items()
            },
            ((self._k, self._v), (self._q, self._grad), results),
        )
        if self._k.shape == self._given[0].shape:
            return results
        sums = _result(self._given[0]), _result(self._given[1])
        sum_groups(results, sums)
        return sums

    def _queries_of(self, block: HeadRows, held: Sequence[Tensor], result: Tensor) -> HeldBlock:
        heads, queries = self._q.shape[1:3]
        batch, head = divmod(block.head, heads)
        of_keys = (batch, head // self._group, 0)
        row = block.head * queries + block.start
        passing = Passing(
            starts=(place(self._k, *of_keys), place(self._v, *of_keys)),
            mask=self._mask_place(batch, head, block.start),
            row=row,
            length=block.start + block.rows if self._options.is_causal else self._k.shape[2],
        )
        return HeldBlock(
            starts=tuple(place(each, batch, head, block.start) for each in held),
            results=(place(result, batch, head, block.start),),
            row=row,
            passing=(passing,),
            # The PEs that read the same keys begin with different ones, which lie on other PEs.
            turn=head % self._group * block.shares + block.share,
            turns=self._group * block.shares,
        )

    def _keys_of(self, block: HeadRows, results: Sequence[Tensor]) -> HeldBlock:
        groups, queries = self._k.shape[1], self._q.shape[2]
        batch, number = divmod(block.head, groups)
        first = block.start if self._options.is_causal else 0
        passing = tuple(
            Passing(
                starts=(place(self._q, batch, head, first), place(self._grad, batch, head, first)),
                mask=self._mask_place(batch, head, first, block.start),
                row=(batch * self._q.shape[1] + head) * queries + first,
                length=queries - first,
            )
            for head in range(number * self._group, (number + 1) * self._group)
        )
        of_keys = (batch, number, block.start)
        return HeldBlock(
            starts=(place(self._k, *of_keys), place(self._v, *of_keys)),
            results=tuple(place(each, *of_keys) for each in results),
            row=0,
            passing=passing,
            turn=block.share,
            turns=block.shares,
        )

    def _mask_place(self, batch: int, head: int, query: int, key: int = 0) -> int:
        mask = self._mask
        return 0 if mask is None else place(mask, batch, head, query) + key * mask.stride(3)

    def _launch(
        self, kernel: Any, parts: dict[tuple[int, int], Any], tensors: tuple[Sequence[Tensor], ...]
    ) -> None:
        held, passing, results = (
            tuple(Rows(pointer_of(window_of(each)), pitch(each)) for each in given)
            for given in tensors
        )
        mask = self._mask
        scores = GradientScores(
            scale=self._options.scale,
            is_causal=self._options.is_causal,
            mask=None
            if mask is None
            else ScoreMask(pointer_of(window_of(mask)), (mask.stride(2), mask.stride(3))),
            statistics=pointer_of(window_of(self._statistics)),
            rows=self._statistics.shape[1],
        )
        operands = GradientOperands(held, (passing[0], passing[1]), results)
        used = [*(each for given in tensors for each in given), self._statistics]
        windows = [window_of(each) for each in (*used, *(() if mask is None else (mask,)))]
        launched(_NAME, kernel, (PerPe(parts), operands, scores), windows, list(parts))


def _blocks(q: Tensor, k: Tensor, mask: Tensor | None, *, of_keys: bool) -> BlockShape | None:
    held, other, counts = (k, q, (2, 2)) if of_keys else (q, k, (3, 1))
    scratch = ScratchBytes.of_gradient(q, mask, held=counts[0], results=counts[1])
    batches, heads, length, depth = held.shape
    return block_shape(batches * heads, length, other.shape[2], depth, scratch)


def _known(shape: BlockShape | None) -> BlockShape:
    assert shape is not None, "has_gradient_kernels"
    return shape


def _grouped(
    shape: BlockShape, blocks: Iterable[tuple[HeadRows, HeldBlock]]
) -> tuple[tuple[BlockShape, tuple[HeldBlock, ...]], ...]:
    """The blocks of a PE by their numbers of rows, full ones first."""
    held_by: dict[int, list[HeldBlock]] = {}
    for block, held in blocks:
        held_by.setdefault(block.rows, []).append(held)
    return tuple(
        (shape._replace(rows=rows), tuple(held_by[rows])) for rows in sorted(held_by, reverse=True)
    )


def _result(operand: Tensor) -> Tensor:
    """Memory for the gradient of an operand; all heads of a token are neighbours, as in the result
    of the projection before attention.
    """
    batches, heads, length, depth = operand.shape
    memory = torch.empty(
        (batches, length, heads, depth), dtype=operand.dtype, device=operand.device
    )
    return memory.transpose(1, 2)
