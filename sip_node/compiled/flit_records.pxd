"""The load of clocked links in C: see flit_records.pyx."""

from sip_node.compiled.router_state cimport OutputPort, Worm


cdef int record_flit(
    OutputPort *port, Worm *worm, int hop, long long now, long long waited, long long left,
    long long period_ps
) except -1
