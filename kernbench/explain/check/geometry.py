"""Blocks of elements as rows of contiguous bytes, exactly: with shapes and strides."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runtime.core.dtypes import BY_NAME

Offsets = NDArray[np.int64]


class RowLayout(NamedTuple):
    """The layout of a block: `offsets` of its rows in the order of its elements, of `row_bytes`
    each, and the bytes from its first byte to behind its last one. `dtype` is the type of an
    element of `item_bytes`.
    """

    offsets: Offsets
    row_bytes: int
    span_bytes: int
    item_bytes: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return len(self.offsets) * self.row_bytes

    def spans(self, address: int) -> list[tuple[int, int]]:
        """The first byte and that behind the last one of each row of a block at an address."""
        if len(self.offsets) == 1:
            return [(address, address + self.row_bytes)]
        begins = (self.offsets + address).tolist()
        return [(begin, begin + self.row_bytes) for begin in begins]

    @property
    def places(self) -> Offsets:
        """The elements from the first one to each, in the shape of the block."""
        item = self.item_bytes
        inside = np.arange(self.row_bytes // item, dtype=np.int64)
        return (self.offsets[:, None] // item + inside).reshape(self.shape)


def layout_of(dtype: str, shape: str, strides: str) -> RowLayout:
    """The layout with lengths and strides as the table of blocks has them."""
    lengths, item = _numbers(shape), BY_NAME[dtype].itemsize
    steps = _numbers(strides) or _row_major(lengths)
    outer = list(zip(lengths, steps, strict=True))
    row = 1
    # Axes of one element have any stride.
    while outer and (outer[-1][0] == 1 or outer[-1][1] == row):
        row *= outer.pop()[0]
    offsets: Any = np.zeros(1, np.int64)
    for length, stride in outer:
        offsets = (offsets[:, None] + np.arange(length) * (stride * item)).reshape(-1)
    row_bytes = row * item
    span = int(offsets.max(initial=0)) + row_bytes
    return RowLayout(offsets, row_bytes, span, item, lengths, dtype)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


def _row_major(lengths: tuple[int, ...]) -> tuple[int, ...]:
    steps, step = list[int](), 1
    for length in reversed(lengths):
        steps.append(step)
        step *= length
    return tuple(reversed(steps))
