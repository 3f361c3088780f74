"""The bytes of memory that the PEs of one launch store to, each with its last store.

The PEs of a launch run side by side, so which of two stores to the same byte comes last depends on
contention alone, unless messages or barriers order them. A program that lets it happen has no
defined result, and no run shows it. So a launch records every store and refuses one that is not
behind the last store of another PE to a byte. The addresses are physical: PEs that store to
replicas of their own, at one virtual address, share no byte.

Atomic operations of several PEs may be on one byte, in any order: a range has the last one of
each, and a store has to be behind all of them.

The PEs of a product store tile by tile, so the rows of a large matrix have hundreds of thousands of
ranges until it is complete. They are kept page by page, where an insertion moves few of them.
"""

from collections.abc import Iterator
from typing import NamedTuple

from runtime.core.trace import Operand
from sip_node.chip.mapping.strided_block import layout_of
from sip_node.chip.store_order import (
    AtomicStores,
    KernelPoint,
    OrderedStore,
    StoreOrders,
    Writer,
)
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
        self._stores: list[OrderedStore | AtomicStores] = []
        self._numbers: dict[OrderedStore | tuple[OrderedStore, ...], int] = {}

    def add(
        self, block: Operand, store: OrderedStore, is_atomic: bool = False
    ) -> StoreConflict | None:
        """Record a store to a physical block, or an atomic operation; the first bytes with a store
        of another PE that it is not behind, if there are any.

        Nothing more is recorded of a block with a conflict.
        """
        address = block.address
        if is_atomic:
            store_number = self._atomic(AtomicStores((store,)))
        else:
            store_number = self._number(store, store)
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

    def _number(
        self, key: OrderedStore | tuple[OrderedStore, ...], store: OrderedStore | AtomicStores
    ) -> int:
        # By number, since a store is compared with that of each range that it overlaps.
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._stores)
            self._stores.append(store)
        return number

    def _atomic(self, stores: AtomicStores) -> int:
        return self._number(stores.members, stores)

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
                    return self._conflict(page, index, begin, stop, writer)
                self._overwrite(page, begin, end, writer)
            else:
                page.add(begin, end, writer)
            begin = end
        return None

    def _unordered(self, page: "PageRanges", index: int, start: int, stop: int, writer: int) -> int:
        """The first range of a page, from `index` on, whose store is not before that of `writer`;
        -1 without one.
        """
        while index < page.starts.size and page.starts.values[index] < stop:
            owner = page.writers.values[index]
            overlaps = owner != writer and page.stops.values[index] > start
            if overlaps and self._earlier(owner, writer) is not None:
                return index
            index += 1
        return -1

    def _earlier(self, owner: int, writer: int) -> OrderedStore | None:
        """A store of `owner` that is not before `writer`; None if all are, or may be behind it."""
        before, store = self._stores[owner], self._stores[writer]
        if isinstance(store, AtomicStores):
            if isinstance(before, AtomicStores):
                return None
            store = store.members[0]
        if isinstance(before, AtomicStores):
            return before.unordered(store)
        return None if store.is_behind(before) else before

    def _overwrite(self, page: "PageRanges", start: int, stop: int, writer: int) -> None:
        """Record a store, or an atomic operation together with those that are there."""
        store = self._stores[writer]
        if not isinstance(store, AtomicStores):
            page.overwrite(start, stop, writer)
            return
        while start < stop:
            index = page.stops.first_from(start + 1)
            if index == page.starts.size or page.starts.values[index] >= stop:
                page.add(start, stop, writer)
                return
            if page.starts.values[index] > start:
                end = page.starts.values[index]
                page.add(start, end, writer)
            else:
                end = min(stop, page.stops.values[index])
                before = self._stores[page.writers.values[index]]
                if isinstance(before, AtomicStores):
                    page.overwrite(start, end, self._atomic(before.joined(store.members)))
                else:
                    page.overwrite(start, end, writer)
            start = end

    def _page(self, number: int) -> "PageRanges":
        if number != self._last_number:
            if number not in self._pages:
                self._pages[number] = PageRanges()
            self._last_number, self._last_page = number, self._pages[number]
        return self._last_page

    def _conflict(
        self, page: "PageRanges", index: int, start: int, stop: int, writer: int
    ) -> StoreConflict:
        """The conflict of a store from `start` to `stop` with range `index` of a page.

        It includes what follows it in the next pages.
        """
        begin, owner = max(start, page.starts.values[index]), page.writers.values[index]
        earlier = self._earlier(owner, writer)
        assert earlier is not None, "a conflict is with a store"
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
        return StoreConflict(begin, end, earlier.writer)


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


class ReleasedRanges:
    """The points that the atomic operations of one launch have released, by the bytes of their
    elements. `served` counts the operations in the order in which memories serve them.
    """

    def __init__(self) -> None:
        self.served = 0
        self._pages: dict[int, PageRanges] = {}
        self._points: list[KernelPoint] = []

    def serve(
        self,
        orders: StoreOrders,
        block: Operand,
        point: KernelPoint | None,
        acquires: bool,
    ) -> tuple[KernelPoint, ...]:
        """An operation on a block is served now, which releases `point`; the points behind which
        its kernel is when it has waited.
        """
        self.served += 1
        if point is None and not acquires:
            return ()
        rows = list(_rows_in_pages(block))
        # A dictionary as a set, in the order of the bytes.
        numbers: dict[int, None] = {}
        for number, start, stop in rows:
            page = self._pages.get(number)
            if page is not None:
                index = page.stops.first_from(start + 1)
                while index < page.starts.size and page.starts.values[index] < stop:
                    numbers[page.writers.values[index]] = None
                    index += 1
        earlier = tuple([self._points[each] for each in numbers])
        if point is not None:
            self._release(rows, orders.point(None, (*earlier, point)))
        return earlier if acquires else ()

    def _release(self, rows: list[tuple[int, int, int]], point: KernelPoint) -> None:
        """Note a point, which is behind all earlier ones, at rows of bytes."""
        own = len(self._points)
        self._points.append(point)
        for number, start, stop in rows:
            page = self._pages.get(number)
            if page is None:
                page = self._pages[number] = PageRanges()
            if page.conflict(start, stop, own) < 0:
                page.add(start, stop, own)
            else:
                page.overwrite(start, stop, own)


def _rows_in_pages(block: Operand) -> Iterator[tuple[int, int, int]]:
    """(page, begin, end) of the rows of a block, cut at the ends of pages."""
    nbytes, rows = layout_of(block)
    row_bytes = nbytes if rows is None else rows.row_bytes
    for row in range(nbytes // row_bytes):
        begin = block.address + (0 if rows is None else rows.row_offset(row))
        stop = begin + row_bytes
        while begin < stop:
            number = begin // _PAGE_BYTES
            end = min(stop, (number + 1) * _PAGE_BYTES)
            yield number, begin, end
            begin = end
