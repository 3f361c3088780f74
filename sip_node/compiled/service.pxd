"""The start and the tail of a message at a server, for callers in C."""

from sip_node.chip.fabric.server cimport FifoServer

cdef struct Service:
    long long start_ps
    long long tail_ps


cdef inline int serve_into(
    FifoServer server, long long head_ps, long long tail_ps, long long nbytes, Service *service
) except -1:
    service.start_ps = server.serve(head_ps, tail_ps, nbytes)
    service.tail_ps = server.tail_ps
    return 0
