"""Where a SIP ends: the UCIe ports of its IO chiplet, towards its neighbours among the SIPs."""

from collections.abc import Callable

from runtime.core.simtime import ps_from_ns
from runtime.core.trace import OpRecord
from runtime.model.routing import SipFabric
from runtime.wire.messages import Message
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.links import link_server
from sip_node.chip.fabric.packet import Packet, bound_for, from_message, to_message
from sip_node.chip.fabric.server import Server


def lookahead_ps(noc_overhead_ns: float, crossing_ps: int) -> int:
    """The least time from the event in which a packet leaves one IO NoC to the event in which it enters the next one."""
    return crossing_ps + ps_from_ns(noc_overhead_ns)


class UciePorts:
    """The endpoint at the IO NoC for all that leaves, and the origin there of all that comes in.

    A packet whose head is at the IO NoC reserves the link of the next hop and becomes a message for the neighbour, timed when
    its head enters the neighbour's IO NoC. With a switch a SIP has one port for all it sends, and packets from several SIPs
    meet in the switch's port to their target; that one is served here, at the receiver, in the total order of arrivals.
    """

    def __init__(self, chip: ChipContext, sips: SipFabric, post: Callable[[Message], None]) -> None:
        self._chip, self._sips, self._post = chip, sips, post
        self._gateway = chip.graph.io_noc
        noc_ns = chip.topology.sip.io_chiplet.noc.overhead_ns
        self._links = {
            neighbour: sips.link(chip.sip, neighbour) for neighbour in sips.neighbours(chip.sip)
        }
        self._latency_ps = {
            neighbour: lookahead_ps(noc_ns, link.latency_ps)
            for neighbour, link in self._links.items()
        }
        switched = chip.topology.system.sips.fabric == "switch"
        bw_gbs = chip.topology.ucie.bw_gbs
        port = link_server(chip.topology, "ucie")
        up = port("ucie.switch", bw_gbs)
        self._ports = {
            neighbour: up if switched else port(link.port.removeprefix("io."), link.bw_gbs)
            for neighbour, link in self._links.items()
        }
        self._next_seq = dict.fromkeys(self._links, 0)
        self._switch_port = (
            link_server(chip.topology, "switch")("switch.out", bw_gbs) if switched else None
        )
        self.sent = 0

    @property
    def ports(self) -> tuple[Server, ...]:
        """The UCIe ports to other SIPs."""
        return tuple({id(server): server for server in self._ports.values()}.values())

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """A packet for another SIP is at the IO NoC."""
        engine, chip = self._chip.engine, self._chip
        chip.send_bounds.entered(packet.sip, packet.entrance_ps)
        neighbour = self._sips.next_hop(chip.sip, packet.sip)
        server = self._ports[neighbour]
        start_ps, left_ps = server.reserve(engine.now_ps, tail_ps, packet.size)
        latency_ps = self._latency_ps[neighbour]
        seq = self._next_seq[neighbour]
        self._next_seq[neighbour] += 1
        self.sent += 1
        chip.log.add(
            OpRecord(
                server.name,
                packet.kind.name.lower(),
                start_ps,
                left_ps,
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
        """A message from a neighbour will be here at its time. One for another SIP will leave again then."""
        target = bound_for(message)
        if target != self._chip.sip:
            self._chip.send_bounds.departed(target, message.time_ps)

    def receive(self, message: Message) -> None:
        """A message from a neighbour: its head is at our IO NoC, or at the port of the switch that leads here."""
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
            self._chip.fabric.send(packet, self._gateway, tail_ps)
        else:
            self.accept(packet, tail_ps)
