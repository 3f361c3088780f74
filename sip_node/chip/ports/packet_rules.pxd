cimport cython

from sip_node.chip.ports.run_block cimport RunBlock


cdef class PacketRules:
    cdef long long _sips, _io_noc
    cdef bint _has_credits
    cdef dict _memories
    cdef frozenset _senders
    cdef frozenset _receivers

    @cython.locals(run=RunBlock)
    cpdef str fault(self, object message)
    @cython.locals(sip=cython.longlong)
    cdef str _header_fault(self, RunBlock run)
    cdef str _node_fault(self, RunBlock run)
    cdef str _credit_fault(self, RunBlock run)
    @cython.locals(base=object, sip_bytes=object, nbytes=object, offset=object)
    cdef str _access_fault(self, RunBlock run)
