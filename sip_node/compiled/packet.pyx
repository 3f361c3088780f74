"""Packets in C; see `sip_node.chip.fabric.packet` for what they are."""

cimport cython

from sip_node.compiled.packet_train cimport PacketTrain
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

    def queued(self, long long waited_ps, str link not None):
        """See `ReferencePacket.queued`."""
        self.wait(waited_ps, link)

    def enter(self, PacketTrain train):
        """See `ReferencePacket.enter`."""
        self.train, self.link_ps, self.longest_ps = train, 0, 0

    cdef int wait(self, long long waited_ps, str link) except -1:
        """`queued` for C classes."""
        self.link_ps += waited_ps
        if waited_ps > self.longest_ps:
            self.longest_ps, self.longest_link = waited_ps, link
        return self.train.times.note_links(self.link_ps, self.longest_link)

    def __copy__(self):
        cdef Packet other = new_packet(self.transfer, self.begin, self.size, self.last)
        other.entrance_ps, other.space, other.came_from = (
            self.entrance_ps, self.space, self.came_from
        )
        other.train, other.link_ps = self.train, self.link_ps
        other.longest_ps, other.longest_link = self.longest_ps, self.longest_link
        return other

    def __repr__(self):
        return f"Packet({self.transfer}, {self.begin}, {self.size}, last={self.last})"


cdef Packet new_packet(Transfer transfer, long long begin, long long size, bint last):
    """A packet, constructed without the call of a Python class."""
    cdef Packet packet = Packet.__new__(Packet)
    packet.transfer, packet.begin, packet.size, packet.last = transfer, begin, size, last
    return packet
