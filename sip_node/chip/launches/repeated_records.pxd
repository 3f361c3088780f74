"""The records of a launch, which are entered again: see repeated_records.pyx."""

from sip_node.chip.records.op_log cimport OpLog
from sip_node.chip.records.packet_train cimport QueueTimes
from sip_node.compiled.operation cimport Operation


cdef class RepeatedRecord:
    # Times and steps count from the begin of the launch.
    cdef Operation about
    cdef str engine, name
    cdef tuple shape
    cdef str dtype
    cdef tuple strides, inputs
    cdef object axis
    # (source sip, target sip, number) of a transfer to another SIP, or None: as at first, and now.
    cdef tuple first_flow, flow
    cdef QueueTimes times


cdef class RepeatedRecords:
    cdef OpLog log
    cdef list records
