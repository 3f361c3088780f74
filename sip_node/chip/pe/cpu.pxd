cimport cython

from sip_node.chip.completion cimport AnyCompletion, Continuation
from sip_node.chip.fabric.packet cimport Packet
from sip_node.chip.host.cpu_port cimport CpuPort
from sip_node.kernel.component cimport Component

cdef int _ARRIVED, _BEGINS


cdef class KernelRun(Continuation):
    cdef PeCpu cpu
    cdef Packet command
    cdef object launch
    cdef long long start_ps, received_ps


cdef class PeCpu(Component):
    cdef object _chip, _context, _dma, _mmu, _ipcq
    cdef CpuPort _port
    cdef tuple _pe
    cdef dict _running, _barriers

    @cython.locals(packet=Packet)
    cpdef void proceed(self, int step, object subject) except *
    cdef _carry_out(self, Packet packet)
    cdef _begin(self, Packet packet, object launch, long long received_ps)
    cpdef _start(self, KernelRun run)
    cdef int ended(self, KernelRun run, object error) except -1
