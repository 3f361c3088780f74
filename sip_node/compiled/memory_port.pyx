"""The port of a memory in C; see `sip_node.chip.memory.memory_port`."""

from sip_node.compiled.memory_packets cimport TransferStore
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet, new_packet, new_transfer
from sip_node.chip.fabric.packet_train cimport new_train

cdef enum:
    # `Kind.WRITE`.
    WRITE = 1


cdef class Ring:
    """A receive ring."""


cdef class MemoryPort(TransferStore):
    """The twin of `ReferenceMemoryPort`, without its packets."""

    def __init__(self, chip, int node, Memory memory not None, long long base, kinds):
        self.calendar, self.outlet = chip.engine, Outlet(chip.fabric, node)
        self.sip, self.node, self.memory, self.base = chip.sip, node, memory, base
        self.control_bytes = chip.topology.control_bytes
        self.data, self.ack, self.arrival = kinds
        self.keeps_data, self.rings, self.early = memory.keeps_data, [], []
        chip.memory_ports[node] = self

    def serve(self, packets):
        """Take the object that serves the packets of the transfers."""
        self.packets, self.accept = packets, packets.accept

    def watch(self, long long ring_base, long long nbytes, int pe_node):
        """See `ReferenceMemoryPort.watch`."""
        cdef Ring ring = Ring.__new__(Ring)
        ring.begin, ring.end, ring.owner = ring_base, ring_base + nbytes, pe_node
        self.rings = [each for each in self.rings if (<Ring> each).begin != ring_base]
        self.rings.append(ring)
        self.rings.sort(key=begin_of)
        # Slots of this ring may be full already; those of rings without owner keep waiting.
        early, self.early = self.early, []
        for packet in early:
            self.announce(packet)

    def contents(self):
        """See `ReferenceMemoryPort.contents`."""
        for offset, page in self.memory.contents():
            content = page.lstrip(b"\0")
            yield self.base + offset + len(page) - len(content), content.rstrip(b"\0")

    cdef int store(self, Packet packet) except -1:
        cdef FabricTransfer transfer = packet.transfer
        cdef long long offset = transfer.address - self.base
        cdef int kind = transfer.kind
        if transfer.payload:
            if transfer.rows is None:
                self.memory.write(offset, transfer.payload)
            else:
                self.memory.write_rows(offset, transfer.rows, 0, transfer.payload)
        if kind == WRITE:
            return self.notify(packet, self.ack, transfer.source_sip, transfer.source_node)
        return self.announce(packet)

    cdef FabricTransfer answer_to(self, FabricTransfer request):
        cdef FabricTransfer answer = new_transfer(
            self.data, self.sip, self.node, request.source_sip, request.source_node
        )
        answer.address, answer.tag = request.address, request.tag
        answer.total, answer.sent_ps = request.total, request.sent_ps
        answer.rows = request.rows
        return answer

    cdef int load(self, FabricTransfer data) except -1:
        cdef long long offset = data.address - self.base
        if data.rows is None:
            data.payload = self.memory.read(offset, data.total)
        else:
            data.payload = self.memory.read_rows(offset, data.rows, 0, data.total)
        return 0

    cdef int announce(self, Packet packet) except -1:
        """Report a full slot to the PE that owns the ring."""
        cdef Ring ring = self.ring_at(address_of(packet))
        if ring is None:
            # The peer's queues were installed before those of the PE here, and it sends already.
            self.early.append(packet)
            return 0
        return self.notify(packet, self.arrival, self.sip, ring.owner)

    cdef Ring ring_at(self, long long address):
        cdef Py_ssize_t low = 0, high = len(self.rings), middle
        cdef Ring ring
        # The first ring that begins above the address is at `low` in the end.
        while low < high:
            middle = (low + high) // 2
            ring = <Ring> self.rings[middle]
            if ring.begin <= address:
                low = middle + 1
            else:
                high = middle
        if not low:
            return None
        ring = <Ring> self.rings[low - 1]
        return ring if address < ring.end else None

    cdef int notify(self, Packet packet, object kind, int sip, int node) except -1:
        cdef FabricTransfer about = packet.transfer
        cdef FabricTransfer notice = new_transfer(kind, self.sip, self.node, sip, node)
        notice.address, notice.tag, notice.total = address_of(packet), about.tag, about.total
        notice.sent_ps, notice.flow = about.sent_ps, about.flow
        notice.element, notice.call = about.element, about.call
        if packet.train is not None:
            notice.train = new_train(packet.train.times)
        return self.outlet.send(
            new_packet(notice, 0, self.control_bytes, True), self.calendar.now_ps
        )


cdef long long address_of(Packet packet):
    """`address` of a packet."""
    cdef FabricTransfer transfer = packet.transfer
    return transfer.address + (packet.begin if transfer.rows is None else 0)


def begin_of(Ring ring not None):
    """The first address of a ring."""
    return ring.begin
