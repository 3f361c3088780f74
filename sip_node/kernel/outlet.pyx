"""A node of the fabric, from which packets are sent, by C methods where these are the ones.

A class of the user may derive from a fabric and override a method. Whether it does is tested once,
when the outlet is constructed, and its method in Python is called then.
"""



cdef class Outlet:
    """Node `node` of a fabric, from which packets are sent."""

    def __cinit__(self, fabric, int node):
        self.node = node
        if isinstance(fabric, Hops) and type(fabric).send is Hops.send:
            self.hops = fabric
        elif isinstance(fabric, CreditedFabric) and type(fabric).send is CreditedFabric.send:
            self.credited_fabric = fabric
        else:
            self.in_python = fabric

    cpdef int send(self, Packet packet, long long tail_ps) except -1:
        if self.hops is not None:
            return self.hops.depart(packet, self.node, tail_ps)
        if self.credited_fabric is not None:
            return self.credited_fabric.depart(packet, self.node, tail_ps)
        self.in_python.send(packet, self.node, tail_ps)
        return 0
