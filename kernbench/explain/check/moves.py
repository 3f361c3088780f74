"""The undefined elements of blocks, and of results of operations that move or convert elements."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernbench.explain.check.geometry import RowLayout
from kernbench.explain.check.undefined_ranges import UndefinedOrigin, UndefinedRange

ElementMask = NDArray[np.bool_]


def moved(
    operation: str, reads: Sequence[RowLayout], result: RowLayout, packed: Sequence[UndefinedRange]
) -> list[UndefinedRange]:
    """The undefined bytes of a result, among those of its block, from those of the operands, one
    behind the other.
    """
    masks, before = list[ElementMask](), 0
    for layout in reads:
        masks.append(undefined_elements(layout, before, packed))
        before += layout.nbytes
    mask = _moved(operation, masks, result)
    return ranges_of(mask, result.item_bytes, packed[0].origin)


def ranges_of(
    mask: ElementMask, item_bytes: int, origin: UndefinedOrigin, before: int = 0
) -> list[UndefinedRange]:
    """The bytes of the elements of a mask, in a block that has the bytes from `before` on."""
    edges: Any = np.flatnonzero(np.diff(np.concatenate([[False], mask.reshape(-1), [False]])))
    edges = (edges * item_bytes + before).tolist()
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [UndefinedRange(begin, end, origin) for begin, end in pairs]


def _moved(operation: str, masks: Sequence[ElementMask], result: RowLayout) -> ElementMask:
    first = masks[0]
    if operation == "math trans":
        return first.swapaxes(-1, -2) if first.ndim > 1 else first
    if operation == "math cat" and first.ndim == len(result.shape):
        # The axis along which the result is longer than its operands.
        longer = [axis for axis, n in enumerate(first.shape) if result.shape[axis] != n]
        return np.concatenate(masks, axis=longer[0] if longer else 0)
    return np.concatenate([each.reshape(-1) for each in masks])


def undefined_elements(
    layout: RowLayout, before: int, packed: Sequence[UndefinedRange]
) -> ElementMask:
    """The elements of a block with an undefined byte; the block has the bytes from `before` on."""
    mask = np.zeros(layout.nbytes // layout.item_bytes, np.bool_)
    for each in packed:
        begin, end = max(each.begin - before, 0), min(each.end - before, layout.nbytes)
        if begin < end:
            mask[begin // layout.item_bytes : -(-end // layout.item_bytes)] = True
    return mask.reshape(layout.shape)
