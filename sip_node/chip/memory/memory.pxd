"""The bytes of one modelled memory, in C: see memory.pyx."""

cdef class Memory:
    cdef readonly str name
    cdef readonly long long nbytes
    cdef readonly bint keeps_data
    # Page number -> bytearray, and the page of the last access: others follow it in most cases.
    cdef dict pages
    cdef long long last_number
    cdef char *last_page

    cpdef bytes read(self, long long offset, long long nbytes)
    cpdef int write(self, long long offset, object data) except -1
    cpdef bytes read_rows(self, long long offset, object rows, long long begin, long long nbytes)
    cpdef int write_rows(
        self, long long offset, object rows, long long begin, object data
    ) except -1
    cdef char *page(self, long long number, bint made) except? NULL
    cdef int fetch(self, long long offset, char *to, long long nbytes) except -1
    cdef int store(self, long long offset, const char *data, long long nbytes) except -1
    cdef int check(self, str access, long long offset, long long nbytes) except -1
