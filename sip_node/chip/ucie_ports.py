"""The UCIe ports of a SIP: the boundary between its fabric and the neighbouring SIPs."""

from collections.abc import Callable

from runtime.core.simtime import ps_from_ns
from runtime.core.trace import OpRecord
from runtime.wire.frames import Message
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Packet, from_message, header_of, to_message
from sip_node.chip.fabric.server import Server


class UciePorts:
    """The endpoint at the IO NoC for packets to other SIPs, and the origin of packets from them.

    A packet whose head is at the IO NoC reserves the link of the next hop and becomes a message for
    the neighbour, timed when its head enters the neighbour's IO NoC. With a switch a SIP has one
    port for all it sends, and packets from several SIPs meet in the switch's port to their target;
    that port is served here, at the receiver, in the total order of arrivals.
    """

    def __init__(self, chip: ChipContext, post: Callable[[Message], None]) -> None:
        self._chip, self._post = chip, post
        sips, links = chip.sips, chip.components.links
        neighbours = {other: sips.link(chip.sip, other) for other in sips.neighbours(chip.sip)}
        noc_ps = ps_from_ns(chip.topology.sip.io_chiplet.noc.overhead_ns)
        # A channel's lookahead is the least of these; see `Partition`.
        self._latency_ps = {other: link.latency_ps + noc_ps for other, link in neighbours.items()}
        switched = chip.topology.system.sips.fabric == "switch"
        bw_gbs = chip.topology.ucie.bw_gbs
        port = links["ucie"]
        up = port("ucie.switch", bw_gbs)
        self._ports = {
            other: up if switched else port(link.port.removeprefix("io."), link.bw_gbs)
            for other, link in neighbours.items()
        }
        # Part of the total order of arrivals: (time, source, seq).
        self._next_seq = dict.fromkeys(neighbours, 0)
        self._switch_port = links["switch"]("switch.out", bw_gbs) if switched else None
        self.sent = 0

    @property
    def ports(self) -> tuple[Server, ...]:
        """The UCIe ports to other SIPs."""
        return tuple({id(server): server for server in self._ports.values()}.values())

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """A packet for another SIP is at the IO NoC."""
        engine, chip = self._chip.engine, self._chip
        chip.send_bounds.entered(packet.sip, packet.entrance_ps)
        neighbour = chip.sips.next_hop(chip.sip, packet.sip)
        server = self._ports[neighbour]
        # Cut-through: the head leaves when the port is free, the tail follows at its bandwidth.
        start_ps, left_ps = server.reserve(engine.now_ps, tail_ps, packet.size)
        latency_ps = self._latency_ps[neighbour]
        seq = self._next_seq[neighbour]
        self._next_seq[neighbour] += 1
        self.sent += 1
        chip.log.add(
            OpRecord(
                engine=server.name,
                name=packet.kind.name.lower(),
                start_ps=start_ps,
                end_ps=left_ps,
                address=packet.address,
                nbytes=packet.size,
            )
        )
        self._post(
            to_message(
                packet, chip.sip, neighbour, seq, start_ps + latency_ps, left_ps + latency_ps
            )
        )

    def expect(self, message: Message) -> None:
        """A message from a neighbour arrives at its time. One for another SIP leaves again then."""
        target = header_of(message).sip
        if target != self._chip.sip:
            # From now on this LP has a bound for it; before, only the promise of its channel had.
            self._chip.send_bounds.departed(target, message.time_ps)

    def receive(self, message: Message) -> None:
        """The head of a packet is at our IO NoC, or at the port of the switch that leads here."""
        packet, tail_ps = from_message(message)
        packet.entrance_ps = message.time_ps
        if self._switch_port is None:
            self._enter(packet, tail_ps)
            return
        now_ps = self._chip.engine.now_ps
        start_ps, tail_ps = self._switch_port.reserve(now_ps, tail_ps, packet.size)
        self._chip.engine.at(start_ps, self._enter, packet, tail_ps)

    def _enter(self, packet: Packet, tail_ps: int) -> None:
        if packet.sip == self._chip.sip:
            self._chip.fabric.send(packet, self._chip.graph.io_noc, tail_ps)
        else:
            self.accept(packet, tail_ps)
