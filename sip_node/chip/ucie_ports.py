"""The UCIe ports of a SIP: the boundary between its fabric and the neighbouring SIPs."""

from collections.abc import Callable, Iterator

from runtime.core.simtime import ps_from_ns
from runtime.core.trace import OpRecord
from runtime.wire.frames import Message
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Packet, from_message, header_of, to_message
from sip_node.chip.fabric.server import Server
from sip_node.chip.fabric.stalled import StalledPacket


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

    def attach(self) -> None:
        """Take the packets for other SIPs from the fabric: their routes end at the IO NoC."""
        self._chip.fabric.attach(self._chip.graph.io_noc, self)

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """A packet for another SIP is at the IO NoC."""
        self._cross(packet, tail_ps, self._chip.sips.next_hop(self._chip.sip, packet.sip))

    def _cross(self, packet: Packet, tail_ps: int, neighbour: int) -> int:
        """Send a packet over the link to a neighbour; returns the time when its tail has left."""
        engine, chip = self._chip.engine, self._chip
        chip.send_bounds.entered(packet.sip, packet.entrance_ps)
        server = self._ports[neighbour]
        # Cut-through: the head leaves when the port is free, the tail follows at its bandwidth.
        start_ps, left_ps = server.reserve(engine.now_ps, tail_ps, packet.size)
        latency_ps = self._latency_ps[neighbour]
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
                packet,
                chip.sip,
                neighbour,
                self._seq(neighbour),
                start_ps + latency_ps,
                left_ps + latency_ps,
            )
        )
        return left_ps

    def _seq(self, neighbour: int) -> int:
        """The number of the next message to a neighbour."""
        seq = self._next_seq[neighbour]
        self._next_seq[neighbour] += 1
        self.sent += 1
        return seq

    def expect(self, message: Message) -> str:
        """A message from a neighbour arrives at its time; the rule that it breaks, or nothing.

        A packet for another SIP leaves again then.
        """
        target = header_of(message).sip
        if target != self._chip.sip:
            # From now on this LP has a bound for it; before, only the promise of its channel had.
            self._chip.send_bounds.departed(target, message.time_ps)
        return ""

    def receive(self, message: Message) -> None:
        """The head of a packet is at our IO NoC, or at the port of the switch that leads here."""
        packet, tail_ps = from_message(message)
        packet.entrance_ps, packet.came_from = message.time_ps, message.source
        if self._switch_port is None:
            self._enter(packet, tail_ps)
            return
        now_ps = self._chip.engine.now_ps
        start_ps, tail_ps = self._switch_port.reserve(now_ps, tail_ps, packet.size)
        self._chip.engine.at(start_ps, self._enter, packet, tail_ps)

    def stalled(self) -> Iterator[StalledPacket]:
        """The packets that stand still at the end of a run, with buffers named by their SIP."""
        for buffer, packet, waits_for in self._chip.fabric.stalled():
            if buffer:
                where = f"sip {self._chip.sip}"
                yield StalledPacket(f"{where} {buffer}", packet, f"{where} {waits_for}")

    def check_at_rest(self) -> None:
        """At the end of a run nothing waits here: every packet has crossed when it came."""

    def _enter(self, packet: Packet, tail_ps: int) -> None:
        if packet.sip == self._chip.sip:
            self._chip.fabric.send(packet, self._chip.graph.io_noc, tail_ps)
        else:
            self.accept(packet, tail_ps)
