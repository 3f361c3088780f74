"""Transfers that arrive from other LPs, in C: see arriving_transfers.pyx."""

from sip_node.compiled.crossings cimport Crossings
from sip_node.compiled.run_block cimport RunBlock
from sip_node.chip.fabric.packet cimport FabricTransfer


cdef class Partial:
    cdef public FabricTransfer transfer
    cdef public long long nbytes


cdef class Arrivals:
    cdef dict begun
    cdef dict numbers

    cdef bint take(self, message, Crossings ports) except -1
    cdef Partial continued(self, message, RunBlock *run)
