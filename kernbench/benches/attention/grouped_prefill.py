"""Causal prefill of one grouped-query layer on all PEs of a SIP."""

from typing import NamedTuple

from kernbench import tl
from kernbench.benches.attention.layer import AttentionLayer, PeGrid, dealt
from runtime.device.kernels.attention.flash import BlockShape, FlashItem, flash
from runtime.device.kernels.attention.online_softmax import SoftmaxState, joined, normalise


def grouped_prefill(  # noqa: PLR0917 - the arguments of a launch are positional
    q: tl.Pointer,
    k: tl.Pointer,
    v: tl.Pointer,
    out: tl.Pointer,
    layer: AttentionLayer,
    shape: BlockShape,
    grid: PeGrid,
) -> None:
    """Kernel: the attention of each query over the keys up to its own; layouts as in
    `AttentionLayer`, blocks of queries as `dealt`.
    """
    blocks = _dealt_blocks(layer, shape, grid)
    # PEs with one sequence begin with different keys: all of them lie on one PE of the cube.
    parts = max(1, grid.pes // layer.sequences)
    part = tl.program_id(0) % parts
    items = [
        FlashItem(
            q + block.queries,
            k + block.keys,
            v + block.keys,
            block.seen,
            is_causal=True,
            start=block.seen * part // parts,
        )
        for block in blocks
    ]
    store_attended(out, [block.queries for block in blocks], items, shape)


def halved_prefill(  # noqa: PLR0917 - see above
    q: tl.Pointer,
    k: tl.Pointer,
    v: tl.Pointer,
    out: tl.Pointer,
    layer: AttentionLayer,
    shape: BlockShape,
    grid: PeGrid,
) -> None:
    """Kernel: the result of `grouped_prefill` from two states of each query, one over the keys of
    the first half of the tokens and one over the others, which are then joined.
    """
    rows, _, depth = shape
    half = layer.tokens // (2 * rows) * rows
    items, targets = list[FlashItem](), list[int | None]()
    for block in _dealt_blocks(layer, shape, grid):
        first = min(half, block.seen)
        for start, count in ((0, first), (first, block.seen - first)):
            if count:
                first_key, is_causal = block.keys + start * depth, start + count == block.seen
                items.append(
                    FlashItem(q + block.queries, k + first_key, v + first_key, count, is_causal)
                )
                targets.append(block.queries if is_causal else None)
    result = tl.empty((rows, depth), out.dtype)
    kept = SoftmaxState(*(tl.empty((rows, columns), tl.float32) for columns in (1, 1, depth)))
    is_second = False
    for target, state in zip(targets, flash(items, shape), strict=True):
        if target is None:
            tl.fused(lambda *parts: tuple(part * 1.0 for part in parts), *state, out=tuple(kept))
            is_second = True
            continue
        normalise(joined(kept, state, out=kept) if is_second else state, result)
        tl.store_async(out + target, result)
        is_second = False


def store_attended(
    out: tl.Pointer, starts: list[int], items: list[FlashItem], shape: BlockShape
) -> None:
    """Store the attention of each item from element `starts` of `out` on."""
    result = tl.empty((shape.rows, shape.depth), out.dtype)
    for start, state in zip(starts, flash(items, shape), strict=True):
        normalise(state, result)
        tl.store_async(out + start, result)


class _DealtBlock(NamedTuple):
    """First query and first key of a block of this PE, and the number of keys that it sees."""

    queries: int
    keys: int
    seen: int


def _dealt_blocks(layer: AttentionLayer, shape: BlockShape, grid: PeGrid) -> list[_DealtBlock]:
    rows, _, depth = shape
    return [
        _DealtBlock(
            ((each.sequence * layer.group + each.head) * layer.tokens + each.block * rows) * depth,
            each.sequence * layer.tokens * depth,
            (each.block + 1) * rows,
        )
        for each in dealt(layer, rows, grid, tl.program_id(1), tl.program_id(0))
    ]
