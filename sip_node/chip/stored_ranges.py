"""The bytes of memory that the PEs of one launch store to: each byte belongs to one PE at most.

The PEs of a launch run side by side, so which of two stores to the same byte comes last depends on
contention alone. A program that lets it happen has no defined result, and no run shows it. So a
launch records every store and refuses the second PE. The addresses are physical: PEs that store to
replicas of their own, at one virtual address, share no byte.

The PEs of a product store tile by tile, so the rows of a large matrix have hundreds of thousands of
ranges until it is complete. They are kept page by page, where an insertion moves few of them.
"""

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.coordinates import PeCoordinates
from runtime.core.trace import Operand
from sip_node.chip.strided_block import layout_of

Writer = PeCoordinates | str
"""A PE, or the text of a program of a grid on a PE."""


class StoreConflict(NamedTuple):
    """Bytes [start, stop) that `writer`, another PE or program of the launch, has stored to."""

    start: int
    stop: int
    writer: Writer


PAGE_BYTES = 1 << 16


class ReferenceStoredRanges:
    """The byte ranges of one launch with their writers.

    Kernels store block behind block, so a page has few ranges as a rule.
    """

    def __init__(self) -> None:
        self._pages: dict[int, ReferencePageRanges] = {}

    def add(self, block: Operand, writer: Writer) -> StoreConflict | None:
        """Record a store to a physical block; the first bytes of another PE, if there are any.

        Nothing more is recorded of a block with a conflict.
        """
        nbytes, rows = layout_of(block)
        if rows is None:
            return self._add(block.address, block.address + nbytes, writer)
        for row in range(nbytes // rows.row_bytes):
            start = block.address + rows.row_offset(row)
            conflict = self._add(start, start + rows.row_bytes, writer)
            if conflict is not None:
                return conflict
        return None

    def clear(self) -> None:
        """Forget all stores: those to come are ordered behind them."""
        self._pages.clear()

    def _add(self, start: int, stop: int, writer: Writer) -> StoreConflict | None:
        while start < stop:
            number = start // PAGE_BYTES
            end = min(stop, (number + 1) * PAGE_BYTES)
            page = self._pages.get(number)
            if page is None:
                page = self._pages[number] = ReferencePageRanges()
            conflict = page.add(start, end, writer)
            if conflict is not None:
                return self._joined(conflict, stop)
            start = end
        return None

    def _joined(self, conflict: StoreConflict, stop: int) -> StoreConflict:
        """A conflict with what follows it in the next pages; the store ends at `stop`."""
        while conflict.stop < stop and not conflict.stop % PAGE_BYTES:
            page = self._pages.get(conflict.stop // PAGE_BYTES)
            further = page.first_in(conflict.stop, stop) if page else None
            if further is None or further[::2] != (conflict.stop, conflict.writer):
                break
            conflict = conflict._replace(stop=further.stop)
        return conflict


class ReferencePageRanges:
    """The ranges of a page: sorted, disjoint, and merged where one writer's touch.

    A store costs two binary searches.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []
        self._writers: list[Writer] = []

    def first_in(self, start: int, stop: int) -> StoreConflict | None:
        """The part of [start, stop) that the first range in it covers."""
        index = bisect_right(self._stops, start)
        if index == len(self._starts) or self._starts[index] >= stop:
            return None
        begin, end = max(start, self._starts[index]), min(stop, self._stops[index])
        return StoreConflict(begin, end, self._writers[index])

    def add(self, start: int, stop: int, writer: Writer) -> StoreConflict | None:
        """Record a store; the first bytes of another PE, if there are any."""
        # The ranges [first, last) overlap or touch the new one.
        first = bisect_left(self._stops, start)
        last = bisect_right(self._starts, stop, first)
        for index in range(first, last):
            if self._writers[index] != writer:
                begin, end = max(start, self._starts[index]), min(stop, self._stops[index])
                if begin < end:
                    return StoreConflict(begin, end, self._writers[index])
        # Without an overlap only the outermost ranges can be those of other PEs: they touch.
        if first < last and self._writers[first] != writer and self._stops[first] == start:
            first += 1
        if first < last and self._writers[last - 1] != writer:
            last -= 1
        if first < last:
            start, stop = min(start, self._starts[first]), max(stop, self._stops[last - 1])
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]
        self._writers[first:last] = [writer]
        return None


if TYPE_CHECKING or not IS_COMPILED:
    StoredRanges = ReferenceStoredRanges
else:
    from sip_node.compiled import stored_ranges

    class StoredRanges(stored_ranges.StoredRanges):
        """The ranges in C; see `ReferenceStoredRanges`."""

        def __init__(self) -> None:
            super().__init__(layout_of, StoreConflict)
