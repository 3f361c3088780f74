"""The rows of the calls of programs, in C: see call_rows.py."""

cimport cython


cdef class CallRows:
    cdef object _recorder, _pack, _pack_block
    cdef list _calls, _blocks
    cdef dict _layouts, _texts
    cdef bint _keeps
    cdef readonly long long begun
    cdef long long _first

    cpdef long long new_call(self) except -1
    cpdef int text(self, str text) except -1
    @cython.locals(rows=list, layouts=dict)
    cpdef add_blocks(self, long long call, int access, int place, object blocks)
    cpdef flush(self)
    cdef _pass_on(self, object table, list rows)
