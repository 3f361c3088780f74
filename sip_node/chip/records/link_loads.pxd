"""The loads of the servers of one SIP over time, in C: see link_loads.pyx."""

from sip_node.compiled.packed_rows cimport PackedRows
from sip_node.chip.records.time_bins cimport ServiceBatch


cdef class LinkLoads(PackedRows):
    cdef readonly list watched
    cdef ServiceBatch batch
