"""Ports and fabrics which may be in C, for texts; packet_ports.py has the interpreted version."""

from sip_node.chip.fabric.packet cimport Packet
from sip_node.compiled.hops cimport Hops, in_c
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.compiled.service cimport Service


cdef inline FifoServer fifo_of(object port):
    return <FifoServer> port if in_c(port) else None


cdef inline Service served(
    FifoServer fifo, object port, long long head_ps, long long tail_ps, long long nbytes
) except *:
    cdef Service service
    if fifo is not None:
        service.start_ps = fifo.serve(head_ps, tail_ps, nbytes)
        service.tail_ps = fifo.tail_ps
    else:
        service.start_ps, service.tail_ps = port.reserve(head_ps, tail_ps, nbytes)
    return service


cdef inline Hops hops_of(object fabric):
    return <Hops> fabric if isinstance(fabric, Hops) else None


cdef inline int send(
    Hops hops, object fabric, Packet packet, int origin, long long tail_ps
) except -1:
    if hops is not None:
        return hops.depart(packet, origin, tail_ps)
    fabric.send(packet, origin, tail_ps)
    return 0
