"""Runs of packets as blocks of words, in C: see run_block.pyx."""

from sip_node.chip.fabric.packet cimport FabricTransfer
from sip_node.compiled.packet_runs cimport OpenRun

cdef enum:
    # Words of a header before its flow, of a flow, of rows, and columns of packets.
    HEADER_WORDS = 9
    FLOW_WORDS = 3
    ROWS_WORDS = 4


cdef struct RunBlock:
    # A block that was opened; the pointers refer to its bytes. NULL for what is none.
    long long number
    const long long *header
    const long long *flow
    const long long *rows
    long long element
    const char *call
    Py_ssize_t call_bytes
    bint ends
    Py_ssize_t packets
    const long long *heads_ps
    const long long *tails_ps
    const long long *seqs
    const long long *begins
    const long long *sizes


cdef bint open_block(bytes block, RunBlock *run) noexcept
cdef bint is_valid(RunBlock *run, long long time_ps, long long seq, Py_ssize_t payload_bytes)
cdef bint carries(long long kind) noexcept
cdef bint has_many_packets(long long kind) noexcept
cdef bint requests(long long kind) noexcept
cdef FabricTransfer transfer_of(RunBlock *run)
cdef bytes pack(OpenRun run, FabricTransfer transfer)
