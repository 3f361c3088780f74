"""The rows of the calls of programs, and of the blocks that they use, in C: see call_rows.pyx."""

from sip_node.compiled.packed_rows cimport PackedRows


cdef packed struct CallRow:
    # The columns of `CALLS`; texts as indices.
    long long call
    int program, operation, line
    long long begin_ps, end_ps, awaits
    int command, queue, slots, depth


cdef packed struct BlockRow:
    # The columns of `BLOCKS`.
    long long call
    unsigned char access, in_memory
    long long address, nbytes
    int dtype, shape, strides


cdef class BlockRows(PackedRows):
    # The last four columns of blocks with a shape, a type and strides, as the bytes of a row.
    cdef dict layouts

    cdef int add(self, long long call, int access, int place, object block) except -1
    cdef bytes layout_of(self, tuple key)


cdef class CallRows(PackedRows):
    cdef BlockRows blocks
    cdef readonly long long begun
    cdef long long first

    cpdef long long new_call(self) except -1
    cpdef int add(
        self, long long call, int program, int operation, int line, long long begin_ps,
        long long end_ps, long long awaits, int command, int queue, int slots, int depth
    ) except -1
    cpdef int add_block(self, long long call, int access, int place, object block) except -1
