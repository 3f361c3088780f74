"""The bytes of memory that the PEs of one launch store to, each with its last store.

The PEs of a launch run side by side, so which of two stores to the same byte comes last depends on
contention alone, unless messages or barriers order them. A program that lets it happen has no
defined result, and no run shows it. So a launch records every store and refuses one that is not
behind the last store of another PE to a byte. The addresses are physical: PEs that store to
replicas of their own, at one virtual address, share no byte.

The PEs of a product store tile by tile, so the rows of a large matrix have hundreds of thousands of
ranges until it is complete. They are kept page by page, where an insertion moves few of them.
"""

from typing import NamedTuple

from runtime.core.trace import Operand
from sip_node.chip.mapping.strided_block import layout_of
from sip_node.chip.store_order import OrderedStore, Writer
from sip_node.kernel.containers.int_array import IntArray


class StoreConflict(NamedTuple):
    """Bytes [start, stop) that `writer`, another PE or program of the launch, has stored to."""

    start: int
    stop: int
    writer: Writer


PAGE_BYTES = 1 << 16
_PAGE_BYTES = PAGE_BYTES
"""A constant; in C a variable of the module that is no object."""


class StoredRanges:
    """The byte ranges of one launch with their stores, which have numbers here.

    Kernels store block behind block, so a page has few ranges as a rule.
    """

    def __init__(self) -> None:
        self._pages: dict[int, PageRanges] = {}
        # The page of the last store: rows follow each other.
        self._last_number, self._last_page = -1, PageRanges()
        self._stores: list[OrderedStore] = []
        self._numbers: dict[OrderedStore, int] = {}

    def add(self, block: Operand, store: OrderedStore) -> StoreConflict | None:
        """Record a store to a physical block; the first bytes with a store of another PE that it is
        not behind, if there are any.

        Nothing more is recorded of a block with a conflict.
        """
        # By number, since a store is compared with that of each range that it overlaps.
        if store not in self._numbers:
            self._numbers[store] = len(self._stores)
            self._stores.append(store)
        store_number, address = self._numbers[store], block.address
        nbytes, rows = layout_of(block)
        if rows is None:
            return self._store(address, address + nbytes, store_number)
        row_bytes, pitch, plane_rows, plane_pitch = rows
        for row in range(nbytes // row_bytes):
            # `rows.row_offset`, without a call for each row.
            start = address + row * pitch
            if plane_rows:
                start = address + row // plane_rows * plane_pitch + row % plane_rows * pitch
            conflict = self._store(start, start + row_bytes, store_number)
            if conflict is not None:
                return conflict
        return None

    def clear(self) -> None:
        """Forget all stores: those to come are ordered behind them."""
        self._pages.clear()
        self._last_number = -1

    def _store(self, start: int, stop: int, writer: int) -> StoreConflict | None:
        """Record a store page by page."""
        begin = start
        while begin < stop:
            end = min(stop, (begin // _PAGE_BYTES + 1) * _PAGE_BYTES)
            page = self._page(begin // _PAGE_BYTES)
            index = page.conflict(begin, end, writer)
            if index >= 0:
                index = self._unordered(page, index, begin, end, writer)
                if index >= 0:
                    return self._conflict(page, index, begin, stop)
                page.overwrite(begin, end, writer)
            else:
                page.add(begin, end, writer)
            begin = end
        return None

    def _unordered(self, page: "PageRanges", index: int, start: int, stop: int, writer: int) -> int:
        """The first range of a page, from `index` on, whose store is not before that of `writer`;
        -1 without one.
        """
        store = self._stores[writer]
        while index < page.starts.size and page.starts.values[index] < stop:
            owner = page.writers.values[index]
            overlaps = owner != writer and page.stops.values[index] > start
            if overlaps and not store.is_behind(self._stores[owner]):
                return index
            index += 1
        return -1

    def _page(self, number: int) -> "PageRanges":
        if number != self._last_number:
            if number not in self._pages:
                self._pages[number] = PageRanges()
            self._last_number, self._last_page = number, self._pages[number]
        return self._last_page

    def _conflict(self, page: "PageRanges", index: int, start: int, stop: int) -> StoreConflict:
        """The conflict of a store from `start` to `stop` with range `index` of a page.

        It includes what follows it in the next pages.
        """
        begin, owner = max(start, page.starts.values[index]), page.writers.values[index]
        end = min(stop, page.stops.values[index])
        while end < stop and end % _PAGE_BYTES == 0 and end // _PAGE_BYTES in self._pages:
            page = self._pages[end // _PAGE_BYTES]
            # No PE has the number -1, so this finds the first range.
            further = page.conflict(end, stop, -1)
            if further < 0 or page.starts.values[further] > end:
                break
            if page.writers.values[further] != owner:
                break
            end = min(stop, page.stops.values[further])
        return StoreConflict(begin, end, self._stores[owner].writer)


class PageRanges:
    """The ranges of a page: sorted, disjoint, and merged where one writer's touch.

    Ranges of one index in the three arrays belong together. A store costs two binary searches.
    """

    def __init__(self) -> None:
        self.starts, self.stops, self.writers = IntArray(), IntArray(), IntArray()

    def conflict(self, start: int, stop: int, writer: int) -> int:
        """The index of the first range of another writer that overlaps a store; -1 without one."""
        index = self.stops.first_from(start)
        while index < self.starts.size and self.starts.values[index] < stop:
            if self.writers.values[index] != writer and self.stops.values[index] > start:
                return index
            index += 1
        return -1

    def overwrite(self, start: int, stop: int, writer: int) -> None:
        """Record a store that is behind those of the ranges that it overlaps, one at least."""
        first = last = self.stops.first_from(start + 1)
        while last < self.starts.size and self.starts.values[last] < stop:
            last += 1
        begin, before = self.starts.values[first], self.writers.values[first]
        end, behind = self.stops.values[last - 1], self.writers.values[last - 1]
        self.starts.replace(first, last, start)
        self.stops.replace(first, last, stop)
        self.writers.replace(first, last, writer)
        if end > stop:
            self._insert(first + 1, stop, end, behind)
        if begin < start:
            self._insert(first, begin, start, before)

    def _insert(self, index: int, start: int, stop: int, writer: int) -> None:
        self.starts.replace(index, index, start)
        self.stops.replace(index, index, stop)
        self.writers.replace(index, index, writer)

    def add(self, start: int, stop: int, writer: int) -> None:
        """Record a store without a conflict."""
        # The ranges [first, last) overlap or touch the new one.
        first = last = self.stops.first_from(start)
        while last < self.starts.size and self.starts.values[last] <= stop:
            last += 1
        # Without an overlap only the outermost ranges can be those of other PEs: they touch.
        if (
            first < last
            and self.writers.values[first] != writer
            and self.stops.values[first] == start
        ):
            first += 1
        if first < last and self.writers.values[last - 1] != writer:
            last -= 1
        if first < last:
            start = min(start, self.starts.values[first])
            stop = max(stop, self.stops.values[last - 1])
        self.starts.replace(first, last, start)
        self.stops.replace(first, last, stop)
        self.writers.replace(first, last, writer)
