"""The records of a PE's operations, in C; records.py has what each argument is."""

from sip_node.chip.fabric.packet cimport FabricTransfer
from sip_node.chip.records.packet_train cimport QueueTimes
from sip_node.chip.records.op_log cimport OpLog
from sip_node.compiled.operation cimport (
    FOR_CHANNEL, FOR_ENGINE, FOR_NOTHING, FOR_OPERAND, Operation,
)


cdef inline int enter_block(
    OpLog log, str engine, str name, long long start_ps, long long end_ps, int cube, int pe,
    long long address, long long nbytes, unsigned int checksum, long long requested_ps,
    int waited_for, long long step, tuple shape, str dtype, tuple strides, tuple inputs,
    object flow, QueueTimes times, object axis=None,
) except -1:
    cdef Operation about
    about.start_ps, about.end_ps, about.requested_ps = start_ps, end_ps, requested_ps
    about.cube, about.pe, about.flow_end = cube, pe, False
    about.address, about.nbytes, about.checksum = address, nbytes, checksum
    about.waited_for, about.step = waited_for, step
    return log.enter(engine, name, &about, shape, dtype, strides, inputs, flow, axis, times)


cdef inline int enter(
    OpLog log, str engine, str name, long long start_ps, long long end_ps, int cube, int pe,
    long long nbytes, unsigned int checksum, long long requested_ps, int waited_for,
    long long step, object target, tuple inputs, object flow, QueueTimes times, object axis=None,
) except -1:
    return enter_block(
        log, engine, name, start_ps, end_ps, cube, pe, target.address, nbytes, checksum,
        requested_ps, waited_for, step, target.shape, target.dtype, target.strides, inputs, flow,
        times, axis,
    )


cdef inline int enter_tile(
    OpLog log, str engine, str name, long long start_ps, long long end_ps, int cube, int pe,
    long long address, long long nbytes, unsigned int checksum, long long requested_ps,
    int waited_for, long long step, tuple shape, str dtype, tuple inputs,
) except -1:
    return enter_block(
        log, engine, name, start_ps, end_ps, cube, pe, address, nbytes, checksum, requested_ps,
        waited_for, step, shape, dtype, (), inputs, None, None,
    )


cdef inline int add_arrival(
    OpLog log, str engine, FabricTransfer arrived, long long end_ps, int cube, int pe
) except -1:
    cdef Operation about
    about.start_ps, about.end_ps, about.cube, about.pe = arrived.sent_ps, end_ps, cube, pe
    about.address, about.nbytes, about.checksum = arrived.address, arrived.total, 0
    about.requested_ps, about.waited_for, about.flow_end = about.start_ps, FOR_NOTHING, True
    about.step = arrived.step
    return log.enter(
        engine, "arrival", &about, (), "", (), (), arrived.flow, None,
        None if arrived.train is None else arrived.train.times,
    )
