"""The UCIe ports of a SIP with credits: a packet crosses only if the neighbour has room for it.

    IO NoC            UCIe port                       neighbour
    egress queue ---> link =========== packet =====> ingress buffer ---> IO NoC or egress queue
    of each network    <- - - - - - - credit - - - -  of each link and network

Switching is virtual cut-through (Kermani & Kleinrock): a packet gets the link when the ingress
buffer of its virtual network has room for all of it. Every network has its own queue, so a packet
waits for none of another network. When the last flit of a packet has left the buffer, its bytes
return as a credit: a message on the reverse channel, which takes the latency of a crossing and no
bandwidth. So credits obey the lookahead as packets do.

A packet that is only forwarded stays in its ingress buffer until its tail has left by the next
link. With a switch, the buffers are those of its port to the receiver, one for each sender: no
packet enters the switch that could stop the packets of another sender there.
"""

from collections import deque
from collections.abc import Iterator
from copy import copy
from typing import NamedTuple

from runtime.core.errors import InvariantError
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.credited_fabric import CreditedFabric
from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.fabric.stalled import StalledPacket
from sip_node.chip.link_credits import LinkCredits, LinkNetwork
from sip_node.chip.ucie_ports import UciePorts


class _EgressPacket(NamedTuple):
    """A packet in an egress queue, whose tail is there at `tail_ps`."""

    packet: Packet
    tail_ps: int


class CreditedPorts(UciePorts):
    """The ports of a SIP with `noc.flow_control: credits`."""

    def __init__(self, chip: ChipContext) -> None:
        super().__init__(chip)
        self._credits = LinkCredits(chip.topology, chip.sips)
        self._queues: dict[LinkNetwork, deque[_EgressPacket]] = {}
        self._credit_of_network: dict[LinkNetwork, FabricTransfer] = {}

    def attach(self) -> None:
        """Take the packets for other SIPs from the fabric, into egress buffers of its networks."""
        topology, io_noc = self._chip.topology, self._chip.graph.io_noc
        self._chip.fabric.attach(io_noc, self, topology.port_buffer_bytes, self._left)

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """A packet for another SIP is at the IO NoC."""
        chip = self._chip
        neighbour = chip.sips.next_hop(chip.sip, packet.transfer.sip)
        network = self._credits.network(packet.transfer, chip.sip, neighbour)
        self._queues.setdefault(network, deque()).append(_EgressPacket(packet, tail_ps))
        self._serve(network)

    def fault(self, packet: Packet, source: int) -> str:
        """The rule of the link from a neighbour that a packet of another LP breaks, or nothing."""
        sip, transfer = self._chip.sip, packet.transfer
        if transfer.kind is Kind.LINK_CREDIT:
            if (transfer.source_sip, transfer.sip) != (source, sip):
                return "field sip: a credit goes from a SIP to its neighbour"
            return self._credits.fault_of_credit(LinkNetwork(source, transfer.tag), packet.size)
        if transfer.sip == source or self._chip.sips.next_hop(source, transfer.sip) != sip:
            return f"field sip: no packet from SIP {source} to {transfer.sip} comes by here"
        network = self._credits.network(transfer, source, source)
        return self._credits.fault_of_packet(network, packet.size)

    def receive(self, packet: Packet, tail_ps: int, source: int) -> None:
        """The head of a packet is here, as in a SIP without credits, or a credit."""
        if packet.transfer.kind is not Kind.LINK_CREDIT:
            # The sender still has its packet, until the tail has left.
            super().receive(copy(packet), tail_ps, source)
            return
        network = LinkNetwork(source, packet.transfer.tag)
        self._credits.credited(network, packet.size)
        self._serve(network)

    def stalled(self) -> Iterator[StalledPacket]:
        """The packets that stand still at the end of a run: in the fabric, and at the links."""
        yield from super().stalled()
        sip, fabric = self._chip.sip, self._chip.fabric
        assert isinstance(fabric, CreditedFabric), "the ports belong to a fabric with credits"
        for _, packet, waits_for in fabric.stalled():
            if packet.came_from is not None:
                yield StalledPacket(self._ingress_of(packet), packet, f"sip {sip} {waits_for}")
        for network, queue in sorted(self._queues.items()):
            egress = f"sip {sip} egress to sip {network.neighbour} ({self._credits.name(network)})"
            for packet, _ in queue:
                local = packet.came_from is None
                held = f"sip {sip} {fabric.space_of(packet)}" if local else self._ingress_of(packet)
                yield StalledPacket(held, packet, egress)
            if queue:
                full = self._ingress_name(network.neighbour, sip, network)
                yield StalledPacket(egress, queue[0].packet, full)

    def _ingress_of(self, packet: Packet) -> str:
        """The name of the ingress buffer that a packet is in."""
        sip, before = self._chip.sip, packet.came_from
        assert before is not None, "only packets of other SIPs have an ingress buffer"
        return self._ingress_name(
            sip, before, self._credits.network(packet.transfer, before, before)
        )

    def _ingress_name(self, sip: int, before: int, network: LinkNetwork) -> str:
        return f"sip {sip} ingress from sip {before} ({self._credits.name(network)})"

    def check_at_rest(self) -> None:
        """Check after a run that no packet waits here, and that every credit is back.

        Raises `InvariantError`.
        """
        for network, queue in sorted(self._queues.items()):
            if queue:
                raise InvariantError(
                    f"sip {self._chip.sip}: link to SIP {network.neighbour}",
                    f"{len(queue)} packets wait in {self._credits.name(network)}",
                )
        for missing in self._credits.missing():
            raise InvariantError(f"sip {self._chip.sip}", f"credits that are not home: {missing}")

    def _serve(self, network: LinkNetwork) -> None:
        """Send the packets of a network for which the neighbour has room."""
        queue = self._queues.get(network)
        while queue and self._credits.has_room(network, queue[0].packet.size):
            packet, tail_ps = queue.popleft()
            self._credits.sent(network, packet.size)
            left_ps = self.cross(packet, tail_ps)
            self._chip.engine.at(left_ps, self._crossed, packet)

    def _crossed(self, packet: Packet) -> None:
        """The tail of a packet is on the link: where it has waited, there is room again."""
        if packet.came_from is None:
            self._chip.fabric.release(packet)
        else:
            self._left(packet)

    def _left(self, packet: Packet) -> None:
        """The tail of a packet has left its ingress buffer: a credit returns for it."""
        neighbour = packet.came_from
        assert neighbour is not None, "only packets of other SIPs come from here"
        network = self._credits.network(packet.transfer, neighbour, neighbour)
        self._credits.returned(network, packet.size)
        credit = Packet(self._credit_of(network), 0, packet.size)
        self._egresses[neighbour].notify(credit)

    def _credit_of(self, network: LinkNetwork) -> FabricTransfer:
        """What all credits for a network have in common."""
        sip, io_noc = self._chip.sip, self._chip.graph.io_noc
        if network not in self._credit_of_network:
            self._credit_of_network[network] = FabricTransfer(
                kind=Kind.LINK_CREDIT,
                source_sip=sip,
                source_node=io_noc,
                sip=network.neighbour,
                node=io_noc,
                tag=network.number,
            )
        return self._credit_of_network[network]
