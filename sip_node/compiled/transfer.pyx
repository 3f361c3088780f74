"""Transfers in C; see `sip_node.chip.fabric.packet` for what they are."""

cimport cython

from sip_node.compiled.packet_train cimport PacketTrain


# As the reference without garbage collection: no transfer refers to an object that refers to it.
@cython.no_gc
@cython.freelist(256)
cdef class Transfer:
    """The twin of `ReferenceTransfer`."""

    def __cinit__(self):
        self.payload, self.call = b"", ""

    def __init__(self, kind, int source_sip, int source_node, int sip, int node,
                 long long address=0, long long tag=0, long long total=0, long long sent_ps=0,
                 payload=b"", body=None, flow=None, rows=None, int element=0, call="",
                 PacketTrain train=None):
        self.kind = kind
        self.source_sip, self.source_node = source_sip, source_node
        self.sip, self.node, self.address = sip, node, address
        self.tag, self.total, self.sent_ps = tag, total, sent_ps
        self.payload, self.body, self.flow, self.rows = payload, body, flow, rows
        self.element, self.call, self.train = element, call, train

    def __copy__(self):
        return Transfer(
            self.kind, self.source_sip, self.source_node, self.sip, self.node, self.address,
            self.tag, self.total, self.sent_ps, self.payload, self.body, self.flow, self.rows,
            self.element, self.call, self.train,
        )

    def __repr__(self):
        return (
            f"FabricTransfer({self.kind!r}, from {self.source_sip}:{self.source_node} to "
            f"{self.sip}:{self.node}, {self.total} bytes at {self.address:#x}, tag {self.tag})"
        )
