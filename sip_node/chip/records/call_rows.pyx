"""The rows of the calls of programs, and of the blocks that they use, in C; call_rows.py is
interpreted.
"""

from libc.string cimport memcpy

from runtime.core.dtypes import BY_NAME
from runtime.core.run_tables import BLOCKS, CALLS
from runtime.core.trace import Operand
from sip_node.chip.records.kept_calls import KeptCalls
from sip_node.compiled.struct_fields cimport field_at, offset_of

cdef enum:
    # 15 and 20 KB, which stay in the caches until they are passed on.
    CALL_ROWS = 256
    BLOCK_ROWS = 512

cdef Py_ssize_t ADDRESS = offset_of(Operand, "address")
cdef Py_ssize_t SHAPE = offset_of(Operand, "shape")
cdef Py_ssize_t DTYPE = offset_of(Operand, "dtype")
cdef Py_ssize_t STRIDES = offset_of(Operand, "strides")


cdef class BlockRows(PackedRows):
    """Packs the rows of the blocks of one SIP."""

    def __init__(self, recorder):
        self.start(recorder, BLOCKS, sizeof(BlockRow), BLOCK_ROWS)
        self.layouts = {}

    cdef int add(self, long long call, int access, int place, object block) except -1:
        """Add the row of a block, an `Operand`."""
        cdef tuple key = (field_at(block, SHAPE), field_at(block, DTYPE), field_at(block, STRIDES))
        cdef BlockRow *row
        layout = self.layouts.get(key)
        if layout is None:
            layout = self.layouts[key] = self.layout_of(key)
        row = <BlockRow *> self.new_row()
        memcpy(row, <char *> <bytes> layout, sizeof(BlockRow))
        row.call, row.access, row.in_memory = call, access, place
        row.address = field_at(block, ADDRESS)
        return 0

    cdef bytes layout_of(self, tuple key):
        cdef BlockRow row
        shape, dtype, strides = key
        row.nbytes = BY_NAME[dtype].itemsize
        for length in shape:
            row.nbytes *= length
        row.dtype = self.text(dtype)
        row.shape = self.text(",".join(map(str, shape)))
        row.strides = self.text(",".join(map(str, strides)))
        return (<char *> &row)[:sizeof(BlockRow)]

    def repeat(self, const unsigned char[:] rows, long long calls, distances):
        """Add kept rows again; `distances` has how far each has moved, or nothing."""
        cdef BlockRow *row
        cdef Py_ssize_t count = rows.shape[0] // sizeof(BlockRow), index
        cdef bint moves = bool(distances)
        for index in range(count):
            row = <BlockRow *> self.new_row()
            memcpy(row, &rows[index * sizeof(BlockRow)], sizeof(BlockRow))
            row.call += calls
            if moves:
                row.address += distances[index]


cdef class CallRows(PackedRows):
    """See call_rows.py."""

    def __init__(self, recorder):
        self.start(recorder, CALLS, sizeof(CallRow), CALL_ROWS)
        self.blocks = BlockRows(recorder)

    cpdef long long new_call(self) except -1:
        """See call_rows.py."""
        self.begun += 1
        return self.begun - 1

    cpdef int add(
        self, long long call, int program, int operation, int line, long long begin_ps,
        long long end_ps, long long awaits, int command, int queue, int slots, int depth
    ) except -1:
        """See call_rows.py."""
        cdef CallRow *row = <CallRow *> self.new_row()
        row.call, row.program, row.operation, row.line = call, program, operation, line
        row.begin_ps, row.end_ps, row.awaits, row.command = begin_ps, end_ps, awaits, command
        row.queue, row.slots, row.depth = queue, slots, depth
        return 0

    cpdef int add_block(self, long long call, int access, int place, object block) except -1:
        """See call_rows.py."""
        return self.blocks.add(call, access, place, block)

    def flush(self):
        """See call_rows.py."""
        self.pass_on()
        self.blocks.pass_on()

    def keep(self):
        """Keep the rows of kernels from now on, until `end_keeping` or the next `keep`."""
        self.begin_keeping()
        self.blocks.begin_keeping()
        self.first = self.begun

    def end_keeping(self):
        """Keep no more rows."""
        self.kept = self.blocks.kept = None

    def kept_calls(self):
        """The rows since `keep`, all of kernels: no rank goes on beside a repeated launch."""
        return KeptCalls(
            self.kept_rows(), self.blocks.kept_rows(), self.first, self.begun - self.first
        )

    def repeat(self, kept, int programs, long long moved_ps, distances):
        """Add kept rows again: `programs` is added to the numbers of programs, `moved_ps` to times,
        and to the address of each block its distance, if there are any.
        """
        cdef const unsigned char[:] rows = kept.calls
        cdef CallRow *row
        cdef Py_ssize_t count = rows.shape[0] // sizeof(CallRow), index
        cdef long long calls = self.begun - kept.first
        self.begun += kept.begun
        for index in range(count):
            row = <CallRow *> self.new_row()
            memcpy(row, &rows[index * sizeof(CallRow)], sizeof(CallRow))
            row.call += calls
            row.program += programs
            row.begin_ps += moved_ps
            row.end_ps += moved_ps
            if row.awaits >= 0:
                row.awaits += calls
        self.blocks.repeat(kept.blocks, calls, distances)
