"""Runs of packets as blocks of words, in C: see run_block.pyx."""

cimport cython

from sip_node.chip.fabric.packet cimport FabricTransfer, Packet


@cython.final
cdef class RunBlock:
    cdef readonly long long number
    cdef readonly bint begins, ends
    cdef readonly Py_ssize_t packets
    # Of a run that begins its transfer.
    cdef readonly object kind
    cdef readonly int source_sip, source_node, sip, node
    cdef readonly long long address, tag, total, sent_ps
    cdef readonly object flow, rows
    cdef readonly int element
    cdef readonly str call
    # The block, and its columns.
    cdef bytes block
    cdef const long long *heads_ps
    cdef const long long *tails_ps
    cdef const long long *seqs
    cdef const long long *begin_bytes
    cdef const long long *sizes

    cpdef long long head_ps(self, Py_ssize_t index) noexcept
    cpdef long long tail_ps(self, Py_ssize_t index) noexcept
    cpdef long long seq(self, Py_ssize_t index) noexcept
    cpdef long long begin(self, Py_ssize_t index) noexcept
    cpdef long long size(self, Py_ssize_t index) noexcept


cpdef RunBlock run_of(object message)


@cython.final
cdef class OpenRun:
    cdef readonly FabricTransfer transfer
    cdef readonly bint ends
    cdef readonly long long time_ps, seq
    cdef long long number
    cdef bint is_first
    # Five words for each packet.
    cdef long long *values
    cdef Py_ssize_t size, capacity

    cpdef int append(
        self, long long head_ps, long long tail_ps, long long seq, Packet packet
    ) except -1
    cpdef bint is_full(self) noexcept
    cpdef bytes packed(self)
