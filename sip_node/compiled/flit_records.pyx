"""The load of clocked links, and what packets queue for them, in C; see `OutputPort.record`."""

from sip_node.chip.fabric.packet cimport Packet
from sip_node.compiled.router_state cimport OutputPort, Worm
from sip_node.chip.time_bins cimport TimeBins, add_service


cdef int record_flit(
    OutputPort *port, Worm *worm, int hop, long long now, long long waited, long long left,
    long long period_ps
) except -1:
    """A flit of a packet, which has `left` of them, leaves in cycle `now`.

    The head of a packet has waited for `waited` cycles.
    """
    cdef Packet packet = <Packet> worm.packet
    cdef bint is_head = left == worm.flits
    cdef long long queued_ps = waited * period_ps if is_head else 0
    if port.bins:
        add_service(
            &(<TimeBins> port.bins).batch.latest, &(<TimeBins> port.bins).open_bin,
            now * period_ps, (now + port.flit_cycles) * period_ps, packet.size if is_head else 0,
            queued_ps, is_head,
        )
    if is_head:
        port.packets += 1
        queued_ps = packet.train.at_router(hop, port.packets, queued_ps)
        if queued_ps:
            packet.queued(queued_ps, <str> port.name)
    return 0
