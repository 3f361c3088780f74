"""The bytes that the PEs of a launch store to, in C; see `sip_node.chip.stored_ranges`."""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.string cimport memmove

from sip_node.compiled.strided_rows cimport Rows, pass_row, rows_from, start_of

cdef enum:
    PAGE_BYTES = 1 << 16


cdef class PageRanges:
    """The twin of `ReferencePageRanges`: an array in rising order."""

    def __dealloc__(self):
        PyMem_Free(self.ranges)

    cdef Py_ssize_t first_from(self, long long start) noexcept:
        """The first range that ends at `start` or above it."""
        cdef Py_ssize_t low = 0, high = self.count, middle
        while low < high:
            middle = (low + high) // 2
            if self.ranges[middle].stop < start:
                low = middle + 1
            else:
                high = middle
        return low

    cdef bint conflicts(self, StoredRange added, StoredRange *found) noexcept:
        """Whether another PE has stored to a part of a range; then `found` is the first part."""
        cdef Py_ssize_t index = self.first_from(added.start)
        while index < self.count and self.ranges[index].start <= added.stop:
            if self.ranges[index].writer != added.writer and self.overlaps(index, added, found):
                return True
            index += 1
        return False

    cdef bint overlaps(self, Py_ssize_t index, StoredRange added, StoredRange *found) noexcept:
        found.start = max(added.start, self.ranges[index].start)
        found.stop = min(added.stop, self.ranges[index].stop)
        found.writer = self.ranges[index].writer
        return found.start < found.stop

    cdef int insert(self, StoredRange added) except -1:
        """Add a range without a conflict, in place of those of its writer that it touches."""
        cdef Py_ssize_t first = self.first_from(added.start), last = first
        cdef StoredRange *grown
        while last < self.count and self.ranges[last].start <= added.stop:
            last += 1
        # Without an overlap only the outermost ranges can be those of other PEs: they touch.
        if first < last and self.ranges[first].writer != added.writer and (
            self.ranges[first].stop == added.start
        ):
            first += 1
        if first < last and self.ranges[last - 1].writer != added.writer:
            last -= 1
        if first < last:
            added.start = min(added.start, self.ranges[first].start)
            added.stop = max(added.stop, self.ranges[last - 1].stop)
        elif self.count == self.capacity:
            grown = <StoredRange *> PyMem_Realloc(
                self.ranges, (2 * self.capacity + 8) * sizeof(StoredRange)
            )
            if grown is NULL:
                raise MemoryError
            self.ranges, self.capacity = grown, 2 * self.capacity + 8
        memmove(
            &self.ranges[first + 1], &self.ranges[last], (self.count - last) * sizeof(StoredRange)
        )
        self.ranges[first] = added
        self.count += first + 1 - last
        return 0


cdef class StoredRanges:
    """The twin of `ReferenceStoredRanges`; `conflict` is the class of what `add` returns."""

    def __init__(self, layout_of, conflict):
        self.layout_of, self.conflict = layout_of, conflict
        self.pages, self.last_number = {}, -1
        self.writers, self.numbers = [], {}

    def clear(self):
        """See `ReferenceStoredRanges.clear`."""
        self.pages, self.last_number, self.last_page = {}, -1, None

    def add(self, block, writer):
        """See `ReferenceStoredRanges.add`."""
        cdef StoredRange added
        cdef long long address = block.address, rest
        cdef Rows left
        number = self.numbers.get(writer)
        if number is None:
            number = self.numbers[writer] = len(self.writers)
            self.writers.append(writer)
        added.writer = number
        nbytes, rows = self.layout_of(block)
        if rows is None:
            added.start, added.stop = address, address + nbytes
            return self.store(added)
        left, rest = rows_from(rows, 0), nbytes
        while rest:
            added.start = address + start_of(&left)
            added.stop = added.start + left.row_bytes
            rest -= pass_row(&left, rest)
            conflict = self.store(added)
            if conflict is not None:
                return conflict
        return None

    cdef object store(self, StoredRange added):
        """Record a store, page by page; the first bytes of another PE, if there are any."""
        cdef StoredRange part = added, found
        cdef PageRanges page
        while part.start < added.stop:
            part.stop = min(added.stop, (part.start // PAGE_BYTES + 1) * PAGE_BYTES)
            page = self.page(part.start // PAGE_BYTES)
            if page.conflicts(part, &found):
                return self.joined(found, added.stop)
            page.insert(part)
            part.start = part.stop
        return None

    cdef PageRanges page(self, long long number):
        if number != self.last_number:
            found = self.pages.get(number)
            if found is None:
                found = self.pages[number] = PageRanges()
            self.last_number, self.last_page = number, found
        return self.last_page

    cdef object joined(self, StoredRange found, long long stop):
        """A conflict with what follows it in the next pages; the store ends at `stop`."""
        cdef StoredRange rest, further
        while found.stop < stop and not found.stop % PAGE_BYTES:
            page = self.pages.get(found.stop // PAGE_BYTES)
            # The writer of `rest` is none of the PEs: its conflict is with the first range.
            rest.start, rest.stop, rest.writer = found.stop, stop, -1
            if page is None or not (<PageRanges> page).conflicts(rest, &further):
                break
            if further.start != found.stop or further.writer != found.writer:
                break
            found.stop = further.stop
        return self.conflict(found.start, found.stop, self.writers[found.writer])
