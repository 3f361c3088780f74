"""Records of the op log by texts, in C; records.py has the interpreted version."""

from sip_node.chip.fabric.packet cimport FabricTransfer
from sip_node.compiled.op_log cimport OpLog
from sip_node.compiled.operation cimport FOR_NOTHING, Operation


cdef inline int add_arrival(
    OpLog log, str engine, FabricTransfer arrived, long long end_ps, int cube, int pe
) except -1:
    cdef Operation about
    about.start_ps, about.end_ps, about.cube, about.pe = arrived.sent_ps, end_ps, cube, pe
    about.address, about.nbytes, about.checksum = arrived.address, arrived.total, 0
    about.requested_ps, about.waited_for, about.flow_end = about.start_ps, FOR_NOTHING, True
    return log.enter(
        engine, "arrival", &about, (), "", (), (), arrived.flow, None,
        None if arrived.train is None else arrived.train.times,
    )
