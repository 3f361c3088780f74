"""Stages that serve one token at a time, in C: see serial_stage.pyx."""

from sip_node.compiled.calendar cimport Calendar
from sip_node.chip.op_log cimport OpLog
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.compiled.service cimport Service
from sip_node.compiled.tile_token cimport Stage, Token


cdef class SerialStage(Stage):
    cdef Calendar calendar
    cdef int number
    cdef OpLog log
    cdef int cube
    cdef int pe
    cdef object waiting
    cdef bint is_busy

    cdef int join(self, Calendar engine, OpLog log, object at) except -1
    cdef int begin(self) except -1


cdef class PortStage(SerialStage):
    cdef public FifoServer server
    cdef public long long records

    cdef int serve(self, long long nbytes, Service *service) except -1
