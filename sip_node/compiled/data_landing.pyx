"""The DATA that a DMA engine has requested, in C; see `sip_node.chip.pe.data_landing`."""

from sip_node.chip.fabric.packet cimport FabricTransfer, Packet, new_packet
from sip_node.compiled.calendar cimport Calendar
from sip_node.compiled.dma_requests cimport DmaRequests
from sip_node.compiled.hops cimport Endpoint
from sip_node.compiled.ports cimport Outlet, Port
from sip_node.compiled.read_window cimport ReadWindow
from sip_node.compiled.server cimport Service


cdef class DataLanding(Endpoint):
    """The twin of `ReferenceDataLanding`."""

    def __init__(self, Calendar engine not None, port, fabric, int node,
                 ReadWindow window not None, landed):
        self.calendar, self.port = engine, Port(port)
        self.outlet, self.window, self.landed = Outlet(fabric, node), window, landed
        self.writes, self.come = {}, {}
        owner = getattr(landed, "__self__", None)
        if isinstance(owner, DmaRequests) and type(owner).landed is DmaRequests.landed:
            self.dma = owner

    def forward(self, write):
        """See `ReferenceDataLanding.forward`."""
        self.writes[write.tag] = write

    cdef int take(self, Packet packet, long long tail_ps) except -1:
        """Take a packet whose head has arrived and whose tail arrives at `tail_ps`."""
        cdef Service service
        cdef bint complete
        cdef long long come = packet.size
        cdef FabricTransfer data = packet.transfer, write = None
        # Bytes are counted, since the answers to two READs may come in either order.
        if come < data.total:
            come += <long long> self.come.pop(data, 0)
        complete = come == data.total
        if not complete:
            self.come[data] = come
        if self.writes:
            write = self.writes.get(data.tag)
        if write is None:
            self.port.serve(self.calendar.now_ps, tail_ps, packet.size, &service)
            if packet.train is not None:
                packet.train.at_port(
                    self.calendar.now_ps, service.start_ps, service.tail_ps
                )
            tail_ps = service.tail_ps
        else:
            if complete:
                write.payload = data.payload
                del self.writes[data.tag]
            # Which packet is the last one depends on the order of the answers, not on its bytes.
            self.outlet.send(new_packet(write, packet.begin, packet.size, complete), tail_ps)
        # The port of the TCM is FIFO: when the last packet to come has landed, all have.
        if complete:
            # In this SIP: of a transfer between SIPs of one LP, no packet is in the other one now.
            data.train = packet.train
        if complete and self.dma is not None:
            self.dma.land(data, tail_ps)
        elif complete:
            self.landed(data, tail_ps)
        return self.window.land(tail_ps)
