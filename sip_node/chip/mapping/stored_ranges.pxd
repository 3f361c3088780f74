cimport cython

from sip_node.kernel.containers.int_array cimport IntArray

cdef long long _PAGE_BYTES


cdef class PageRanges:
    cdef readonly IntArray starts
    cdef IntArray stops
    cdef IntArray writers

    @cython.locals(index=cython.Py_ssize_t)
    cpdef Py_ssize_t conflict(self, long long start, long long stop, long long writer) except -2
    @cython.locals(first=cython.Py_ssize_t, last=cython.Py_ssize_t)
    cpdef int add(self, long long start, long long stop, long long writer) except -1
    @cython.locals(
        first=cython.Py_ssize_t, last=cython.Py_ssize_t, begin=cython.longlong,
        before=cython.longlong, end=cython.longlong, behind=cython.longlong,
    )
    cpdef int overwrite(self, long long start, long long stop, long long writer) except -1
    cdef int _insert(
        self, Py_ssize_t index, long long start, long long stop, long long writer
    ) except -1


cdef class StoredRanges:
    cdef dict _pages
    cdef long long _last_number
    cdef PageRanges _last_page
    cdef list _stores
    cdef dict _numbers

    @cython.locals(
        address=cython.longlong, start=cython.longlong, nbytes=cython.longlong,
        row_bytes=cython.longlong, pitch=cython.longlong, plane_rows=cython.longlong,
        plane_pitch=cython.longlong, row=cython.longlong, store_number=cython.longlong,
    )
    cpdef object add(self, object block, object store, bint is_atomic=*)
    cdef long long _number(self, object key, object store) except -1
    cdef long long _atomic(self, object stores) except -1
    cdef object _earlier(self, long long owner, long long writer)
    @cython.locals(index=cython.Py_ssize_t, end=cython.longlong)
    cdef void _overwrite(
        self, PageRanges page, long long start, long long stop, long long writer
    ) except *
    @cython.locals(
        begin=cython.longlong, end=cython.longlong, index=cython.Py_ssize_t, page=PageRanges
    )
    cdef object _store(self, long long start, long long stop, long long writer)
    @cython.locals(owner=cython.longlong, overlaps=cython.bint)
    cdef Py_ssize_t _unordered(
        self, PageRanges page, Py_ssize_t index, long long start, long long stop, long long writer
    ) except -2
    cdef PageRanges _page(self, long long number)
    @cython.locals(
        begin=cython.longlong, end=cython.longlong, owner=cython.longlong, page=PageRanges,
        further=cython.Py_ssize_t,
    )
    cdef object _conflict(
        self, PageRanges page, Py_ssize_t index, long long start, long long stop, long long writer
    )


cdef class ReleasedRanges:
    cdef readonly long long served
    cdef dict _pages
    cdef list _points

    @cython.locals(
        page=PageRanges, index=cython.Py_ssize_t, start=cython.longlong, stop=cython.longlong
    )
    cpdef tuple serve(self, object orders, object block, object point, bint acquires)
    @cython.locals(
        page=PageRanges, own=cython.longlong, start=cython.longlong, stop=cython.longlong
    )
    cdef _release(self, list rows, object point)
