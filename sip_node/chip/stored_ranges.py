"""The bytes of memory that the PEs of one launch store to: each byte belongs to one PE at most.

The PEs of a launch run side by side, so which of two stores to the same byte comes last depends on
contention alone. A program that lets it happen has no defined result, and no run shows it. So a
launch records every store and refuses the second PE. The addresses are physical: PEs that store to
replicas of their own, at one virtual address, share no byte.
"""

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from runtime.core.coordinates import PeCoordinates
from runtime.core.trace import Operand
from sip_node.chip.strided_block import layout_of


class StoreConflict(NamedTuple):
    """Bytes [start, stop) that `writer`, another PE of the launch, has stored to."""

    start: int
    stop: int
    writer: PeCoordinates


class StoredRanges:
    """Byte ranges with their writers: sorted, disjoint, and merged where one writer's touch.

    Kernels store block behind block, so a PE has one range for each memory as a rule. A store costs
    two binary searches.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []
        self._writers: list[PeCoordinates] = []

    def add(self, block: Operand, writer: PeCoordinates) -> StoreConflict | None:
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

    def _add(self, start: int, stop: int, writer: PeCoordinates) -> StoreConflict | None:
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
