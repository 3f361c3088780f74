"""The kernels of a PE in C: see kernel_runs.pyx."""

from sip_node.chip.fabric.packet cimport Packet
from sip_node.compiled.calendar cimport Calendar
from sip_node.compiled.completion cimport Continuation
from sip_node.compiled.control_port cimport ControlPort
from sip_node.compiled.hops cimport Endpoint
from sip_node.chip.op_log cimport OpLog


cdef class KernelRun(Continuation):
    # A kernel that runs, its name, and the packet that its command came with.
    cdef KernelRuns runs
    cdef Packet command
    cdef object kernel
    cdef str name
    cdef long long start_ps
    cdef long long requested_ps


cdef class KernelRuns(Endpoint):
    cdef Calendar calendar
    cdef int number
    cdef ControlPort port
    cdef object launch
    cdef object start_kernel
    cdef object send_bounds
    cdef object coordinates
    cdef OpLog log
    cdef dict running
    cdef tuple pe
    cdef int at_cube
    cdef int at_pe

    cdef int insert(self, long long time_ps, int step, Packet packet) except -1
    cdef int begin(self, Packet packet, object launch, long long requested_ps) except -1
    cdef int end(self, KernelRun run, object error) except -1
