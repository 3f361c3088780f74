"""Transfers in C: see transfer.pyx."""

from sip_node.compiled.packet_train cimport PacketTrain


cdef class Transfer:
    cdef public object kind
    cdef public int source_sip
    cdef public int source_node
    cdef public int sip
    cdef public int node
    cdef public long long address
    cdef public long long tag
    cdef public long long total
    cdef public long long sent_ps
    cdef public object payload
    cdef public object body
    cdef public object flow
    cdef public object rows
    cdef public int element
    cdef public object call
    # Of its packets in the SIP that sends it, in a run with records.
    cdef public PacketTrain train
