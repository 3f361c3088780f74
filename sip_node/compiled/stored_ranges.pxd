"""The stores of a launch in C: see stored_ranges.pyx."""

cdef struct StoredRange:
    long long start
    long long stop
    int writer


cdef class PageRanges:
    cdef StoredRange *ranges
    cdef Py_ssize_t count
    cdef Py_ssize_t capacity

    cdef Py_ssize_t first_from(self, long long start) noexcept
    cdef bint conflicts(self, StoredRange added, StoredRange *found) noexcept
    cdef bint overlaps(self, Py_ssize_t index, StoredRange added, StoredRange *found) noexcept
    cdef int insert(self, StoredRange added) except -1


cdef class StoredRanges:
    cdef object layout_of
    cdef object conflict
    cdef dict pages
    # The page of the last store: rows follow each other.
    cdef long long last_number
    cdef PageRanges last_page
    # The writers, and the number of each.
    cdef list writers
    cdef dict numbers

    cdef object store(self, StoredRange added)
    cdef PageRanges page(self, long long number)
    cdef object joined(self, StoredRange found, long long stop)
