"""Packets in C; see `sip_node.chip.fabric.packet` for what they are."""

cimport cython

from sip_node.compiled.transfer cimport Transfer


# As the reference without garbage collection: no packet refers to an object that refers to it.
@cython.no_gc
@cython.freelist(256)
cdef class Packet:
    """The twin of `ReferencePacket`."""

    def __init__(self, Transfer transfer not None, long long begin, long long size, bint last=True,
                 long long entrance_ps=0, space=None, came_from=None):
        self.transfer, self.begin, self.size, self.last = transfer, begin, size, last
        self.entrance_ps, self.space, self.came_from = entrance_ps, space, came_from

    @property
    def address(self):
        """See `ReferencePacket.address`."""
        cdef long long address = self.transfer.address
        return address + self.begin if self.transfer.rows is None else address

    def __copy__(self):
        cdef Packet other = new_packet(self.transfer, self.begin, self.size, self.last)
        other.entrance_ps, other.space, other.came_from = (
            self.entrance_ps, self.space, self.came_from
        )
        return other

    def __repr__(self):
        return f"Packet({self.transfer}, {self.begin}, {self.size}, last={self.last})"


cdef Packet new_packet(Transfer transfer, long long begin, long long size, bint last):
    """A packet, constructed without the call of a Python class."""
    cdef Packet packet = Packet.__new__(Packet)
    packet.transfer, packet.begin, packet.size, packet.last = transfer, begin, size, last
    return packet
