"""Kernels that move the elements under the true elements of a mask to neighbours in memory, or
neighbours to elements under a mask.

The mask is divided into blocks, of which the host has counted the true elements: so each block has
a fixed place among the neighbours. Inside a block, running sums number the true elements, and each
number is compared with all elements of the block.
"""

from collections.abc import Sequence
from typing import NamedTuple

from runtime.device.kernels.conversions import in_type
from runtime.language import tl
from runtime.language.value import Pointer, Value


class MaskBlock(NamedTuple):
    """Elements [first, last) of a mask, of which `true` are true; `start` are true before."""

    first: int
    last: int
    true: int
    start: int


def true_positions(blocks: Sequence[MaskBlock], mask: Pointer, out: Pointer) -> None:
    """Kernel: the positions of the true elements of a mask."""
    for block in blocks:
        with tl.scratch():
            numbers = tl.arange(block.first, block.last)[None, :]
            ranks = _ranks(block, mask)

            def positions(ranks: Value, wanted: Value, numbers: Value) -> Value:
                chosen = tl.where(ranks == wanted, numbers, 0)
                return tl.sum(chosen, 1, keep_dims=True).to(out.dtype)

            tl.store(out + block.start, tl.fused(positions, ranks, _wanted(block), numbers), (1, 1))


def true_elements(
    blocks: Sequence[MaskBlock], least: float, mask: Pointer, source: Pointer, out: Pointer
) -> None:
    """Kernel: the elements of `source` under the true elements of a mask; `least` is a number that
    no element is less than.
    """
    for block in blocks:
        with tl.scratch():
            given = tl.load(source + block.first, (1, block.last - block.first))

            def elements(ranks: Value, wanted: Value, given: Value) -> Value:
                return tl.max(tl.where(ranks == wanted, given, least), 1, keep_dims=True)

            chosen = tl.fused(elements, _ranks(block, mask), _wanted(block), given)
            tl.store(out + block.start, chosen, (1, 1))


def placed_under_mask(
    blocks: Sequence[MaskBlock], least: float, mask: Pointer, source: Pointer, out: Pointer
) -> None:
    """Kernel: the elements of `source`, in their order, over those of `out` under the true elements
    of a mask.
    """
    for block in blocks:
        with tl.scratch():
            width = block.last - block.first
            before = tl.load(out + block.first, (width, 1))
            given = tl.load(source + block.start, (1, block.true))

            def elements(before: Value, ranks: Value, wanted: Value, given: Value) -> Value:
                placed = tl.max(tl.where(ranks == wanted, given, least), 1, keep_dims=True)
                return tl.where(ranks > 0, placed, before)

            ranks = _ranks(block, mask).reshape(width, 1)
            wanted = _wanted(block).reshape(1, block.true)
            result = tl.fused(elements, before, ranks, wanted, given)
            tl.store(out + block.first, result, (1, 1))


def _ranks(block: MaskBlock, mask: Pointer) -> Value:
    """The numbers of the true elements, from 1 on; 0 for all others."""
    given = in_type(tl.load(mask + block.first, (1, block.last - block.first)), tl.int32)
    return tl.cumsum(given, 1) * given


def _wanted(block: MaskBlock) -> Value:
    return tl.arange(1, block.true + 1)[:, None]
