"""A server and a fabric as the loops over packets call them: by C methods where these are the ones.

A class of the user may derive from a server or a fabric and override a method. Whether it does is
tested once, when the loop is constructed, and its method in Python is called then.
"""

from sip_node.compiled.credited_hops cimport CreditedHops
from sip_node.compiled.hops cimport Hops
from sip_node.chip.fabric.packet cimport Packet
from sip_node.compiled.server cimport FifoServer, Service


cdef class Port:
    """A server that serialises packets."""

    def __cinit__(self, server):
        if isinstance(server, FifoServer) and type(server).reserve is FifoServer.reserve:
            self.server = server
        else:
            self.in_python = server

    cdef int serve(
        self, long long head_ps, long long tail_ps, long long nbytes, Service *service
    ) except -1:
        if self.server is not None:
            return self.server.serve(head_ps, tail_ps, nbytes, service)
        service.start_ps, service.tail_ps = self.in_python.reserve(head_ps, tail_ps, nbytes)
        return 0


cdef class Outlet:
    """Node `node` of a fabric, from which packets are sent."""

    def __cinit__(self, fabric, int node):
        self.node = node
        if isinstance(fabric, Hops) and type(fabric).send is Hops.send:
            self.hops = fabric
        elif isinstance(fabric, CreditedHops) and type(fabric).send is CreditedHops.send:
            self.credited_hops = fabric
        else:
            self.in_python = fabric

    cdef int send(self, Packet packet, long long tail_ps) except -1:
        if self.hops is not None:
            return self.hops.depart(packet, self.node, tail_ps)
        if self.credited_hops is not None:
            return self.credited_hops.depart(packet, self.node, tail_ps)
        self.in_python.send(packet, self.node, tail_ps)
        return 0
