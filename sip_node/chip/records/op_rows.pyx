"""The rows of operations for the records of a run, in C. Their version in Python is `op_rows.py`.
"""

from runtime.core.run_tables import OPS, Cause
from runtime.core.trace import Operand
from sip_node.compiled.operation cimport FOR_LINK, FOR_MEMORY, FOR_NOTHING
from sip_node.compiled.struct_fields cimport field_at, offset_of

cdef enum:
    # 24 KB, which stay in the caches until they are passed on.
    ROWS = 256

cdef object operand_type = Operand
cdef Py_ssize_t ADDRESS = offset_of(Operand, "address")
# By `WaitedFor`.
cdef tuple NAMES = (
    Cause.NONE.value, Cause.OPERAND.value, Cause.CHANNEL.value, Cause.ENGINE.value,
    Cause.LAUNCH.value, Cause.LINK.value, Cause.MEMORY.value, Cause.COMMAND.value,
)
cdef dict NUMBERS = {name: number for number, name in enumerate(NAMES)}


def waited_for(cause):
    """The number of a cause."""
    return NUMBERS[cause]


cdef class OpRows(PackedRows):
    """Packs the rows of one SIP."""

    def __init__(self, recorder):
        cdef int index
        self.start(recorder, OPS, sizeof(OpRow), ROWS)
        for index in range(CAUSES):
            self.causes[index] = -1

    cdef int enter(
        self, str engine, str name, Operation *about, long long read_address, object flow,
        QueueTimes times
    ) except -1:
        """Add the row of a record."""
        cdef OpRow *row = <OpRow *> self.new_row()
        cdef long long waited_ps = 0
        cdef int waited_for = FOR_NOTHING
        row.engine, row.name = self.text(engine), self.text(name)
        row.cube, row.pe = about.cube, about.pe
        row.start_ps, row.end_ps = about.start_ps, about.end_ps
        row.address, row.nbytes, row.flow_end = about.address, about.nbytes, about.flow_end
        row.requested_ps, row.step = about.requested_ps, about.step
        row.read_address = read_address
        row.flow_source = row.flow_target = row.flow_sequence = -1
        if flow is not None:
            row.flow_source, row.flow_target, row.flow_sequence = flow
        if about.waited_for != FOR_NOTHING and about.start_ps > about.requested_ps:
            waited_for, waited_ps = about.waited_for, about.start_ps - about.requested_ps
        row.link_ps = row.memory_ps = 0
        if times is not None:
            row.link_ps, row.memory_ps = times.link_ps, times.memory_ps
            if times.link_ps > waited_ps:
                waited_for, waited_ps = FOR_LINK, times.link_ps
            if times.memory_ps > waited_ps:
                waited_for = FOR_MEMORY
        row.cause = self.cause(waited_for)
        row.link = self.text(times.link if times is not None and times.link_ps else "")
        return 0

    cdef int cause(self, int waited_for) except -1:
        if self.causes[waited_for] < 0:
            self.causes[waited_for] = self.text(NAMES[waited_for])
        return self.causes[waited_for]


cdef long long read_address_of(tuple inputs) except? -1:
    """The address of the first block among the inputs of an operation; 0 without one."""
    for each in inputs:
        if type(each) is operand_type:
            return field_at(each, ADDRESS)
    return 0
