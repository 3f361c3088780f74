"""The turns of messages at a port in C: see port_turns.pyx."""

from sip_node.compiled.calendar cimport Calendar
from sip_node.compiled.memory_queue cimport Access, AccessService
from sip_node.compiled.ports cimport Port


cdef class PortTurns(AccessService):
    cdef Calendar calendar
    cdef int number
    cdef Port port
    # By message the accesses behind one that has reserved the port and not begun; None for none.
    cdef dict later

    cdef int reserve(self, Access access, object behind) except -1
