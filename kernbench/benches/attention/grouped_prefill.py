"""Causal prefill of one grouped-query layer on all PEs of a SIP."""

from kernbench import tl
from kernbench.benches.attention.flash import BlockShape, FlashItem, flash
from kernbench.benches.attention.layer import AttentionLayer, PeGrid, dealt
from kernbench.benches.attention.online_softmax import normalise


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
    rows, _, depth = shape
    blocks = dealt(layer, rows, grid, tl.program_id(1), tl.program_id(0))
    starts = [
        ((block.sequence * layer.group + block.head) * layer.tokens + block.block * rows) * depth
        for block in blocks
    ]
    items = [
        FlashItem(
            q + start,
            k + block.sequence * layer.tokens * depth,
            v + block.sequence * layer.tokens * depth,
            (block.block + 1) * rows,
            is_causal=True,
        )
        for block, start in zip(blocks, starts, strict=True)
    ]
    store_attended(out, starts, items, shape)


def store_attended(
    out: tl.Pointer, starts: list[int], items: list[FlashItem], shape: BlockShape
) -> None:
    """Store the attention of each item from element `starts` of `out` on."""
    result = tl.empty((shape.rows, shape.depth), out.dtype)
    for start, state in zip(starts, flash(items, shape), strict=True):
        normalise(state, result)
        tl.store_async(out + start, result)
