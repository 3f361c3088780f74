"""The endpoint of a component with several parts in C; see `sip_node.chip.fabric.packet_switch`."""

from cpython.list cimport PyList_GET_ITEM

from sip_node.compiled.hops cimport Endpoint
from sip_node.chip.fabric.packet cimport Packet


cdef class PacketSwitch(Endpoint):
    """The twin of `ReferencePacketSwitch`."""

    def __init__(self, receivers):
        self.receivers = [None] * KINDS
        for kind, receiver in receivers.items():
            # The endpoint in C whose `accept` it is, or the method in Python.
            owner = getattr(receiver, "__self__", None)
            in_c = isinstance(owner, Endpoint) and type(owner).accept is Endpoint.accept
            self.receivers[kind] = owner if in_c and receiver == owner.accept else receiver

    cdef int take(self, Packet packet, long long tail_ps) except -1:
        """Pass a packet to the part for its kind."""
        cdef int kind = packet.transfer.kind
        assert 0 <= kind < KINDS, f"a packet of kind {kind}"
        receiver = <object> PyList_GET_ITEM(self.receivers, kind)
        if isinstance(receiver, Endpoint):
            return (<Endpoint> receiver).take(packet, tail_ps)
        receiver(packet, tail_ps)
        return 0
