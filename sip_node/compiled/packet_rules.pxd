"""Which transfers from other SIPs may enter a chip, in C: see packet_rules.pyx."""

from sip_node.compiled.run_block cimport RunBlock


cdef class Rules:
    cdef long long sips
    # Where links have credits, the node that sends and receives them; else -1.
    cdef long long credit_node
    cdef long long credit_kind
    cdef dict memories
    cdef frozenset senders
    cdef frozenset receivers
    cdef frozenset to_memory

    cdef bint allows(self, message) except -1
    cdef bint may_enter(self, RunBlock *run) except -1
    cdef bint fits(self, RunBlock *run) except -1
