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

A *virtual network* of a link is a message class and a layer (`SipFabric.layer`); each has a buffer
of its own at the receiver. The sender subtracts a packet from the room of its network, and adds it
again when its credit arrives.
"""

import math
from collections import Counter, deque
from collections.abc import Iterator
from copy import copy
from typing import NamedTuple

from runtime.core.errors import InvariantError
from runtime.core.simtime import PS_PER_NS, exact, ps_from_ns, serialisation_ps
from runtime.model.sip_fabric import SipFabric, crossing_ps
from runtime.model.topology import Topology
from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.clocked.credited_fabric import CreditedFabric
from sip_node.chip.fabric.clocked.stalled import CLASSES, StalledPacket
from sip_node.chip.fabric.packet import REQUESTS, FabricTransfer, Kind, Packet
from sip_node.chip.ports.ucie_ports import UciePorts


class LinkNetwork(NamedTuple):
    """Virtual network `number` of the link from or to SIP `neighbour`."""

    neighbour: int
    number: int


class LinkCredits:
    """The room in the buffers of the neighbours, and the use of the own ones.

    Links are checked when a message comes in, at a wall-clock time: it may be earlier than its
    simulated time, but never before what caused it.
    """

    def __init__(self, topology: Topology, sips: SipFabric) -> None:
        self._sips = sips
        self.capacity_bytes = ingress_bytes(topology)
        self.networks = len(CLASSES) * sips.layers
        self._used: Counter[LinkNetwork] = Counter()
        # Sent and not credited by any message that has come in; received and not credited.
        self._uncredited: Counter[LinkNetwork] = Counter()
        self._unreturned: Counter[LinkNetwork] = Counter()

    def network(self, transfer: FabricTransfer, sip: int, neighbour: int) -> LinkNetwork:
        """The network of a transfer on its crossing from SIP `sip` to the next on its route.

        `neighbour` is the SIP at the other end, for either of the two.
        """
        message_class = 0 if transfer.kind in REQUESTS else 1
        layer = self._sips.layer(transfer.source_sip, sip, transfer.sip)
        return LinkNetwork(neighbour, message_class * self._sips.layers + layer)

    def name(self, network: LinkNetwork) -> str:
        """`requests, layer 0`."""
        message_class, layer = divmod(network.number, self._sips.layers)
        return f"{CLASSES[message_class]}, layer {layer}"

    def has_room(self, network: LinkNetwork, nbytes: int) -> bool:
        """Whether the neighbour has room for a packet; an empty buffer takes one of any size."""
        # Virtual cut-through: a packet that has begun never stops on the link, so all of it needs
        # room. A packet larger than the buffer would never have that: it takes an empty buffer.
        used = self._used[network]
        return not used or used + nbytes <= self.capacity_bytes

    def sent(self, network: LinkNetwork, nbytes: int) -> None:
        """A packet leaves for the buffer of the neighbour."""
        self._used[network] += nbytes
        self._uncredited[network] += nbytes

    def credited(self, network: LinkNetwork, nbytes: int) -> None:
        """A credit has arrived."""
        self._used[network] -= nbytes

    def returned(self, network: LinkNetwork, nbytes: int) -> None:
        """A credit is sent for a packet that has left the own buffer."""
        self._unreturned[network] -= nbytes

    def fault_of_credit(self, network: LinkNetwork, nbytes: int) -> str:
        """The rule that a credit breaks which has come in, or nothing."""
        if network.number >= self.networks:
            return f"a credit for network {network.number}; a link has {self.networks}"
        open_bytes = self._uncredited[network]
        if nbytes > open_bytes:
            return (
                f"a credit of {nbytes:,} B for {self.name(network)} of the link to SIP "
                f"{network.neighbour}, which has been sent {open_bytes:,} B without a credit"
            )
        self._uncredited[network] -= nbytes
        return ""

    def fault_of_packet(self, network: LinkNetwork, nbytes: int) -> str:
        """The rule that a packet breaks which has come in, or nothing."""
        before = self._unreturned[network]
        if before and before + nbytes > self.capacity_bytes:
            return (
                f"a packet of {nbytes:,} B for {self.name(network)} of the link from SIP "
                f"{network.neighbour}, whose buffer has {self.capacity_bytes - before:,} B free"
            )
        self._unreturned[network] += nbytes
        return ""

    def missing(self) -> Iterator[str]:
        """The credits that are not home, by network."""
        for network, nbytes in sorted(self._used.items()):
            if nbytes:
                name = self.name(network)
                yield f"{nbytes:,} B for {name} of the link to SIP {network.neighbour}"


def ingress_bytes(topology: Topology) -> int:
    """The capacity of the ingress buffer of a virtual network.

    As many flits as a router has for it, and those which the link carries in a round trip: two
    crossings, and the serialisation of a packet when it arrives and when it leaves. So an
    uncontended stream in one network has the bandwidth of the link.
    """
    noc, bw_gbs = topology.noc, topology.ucie.bw_gbs
    there_ps = crossing_ps(topology) + ps_from_ns(topology.sip.io_chiplet.noc.overhead_ns)
    # With less than a round trip of flits a link idles while its credits are on their way (Dally &
    # Towles, chapter 13).
    round_trip_ps = 2 * (there_ps + serialisation_ps(topology.packet_bytes, bw_gbs))
    on_link = math.ceil(exact(bw_gbs) * round_trip_ps / PS_PER_NS / noc.flit_bytes)
    return (noc.vcs * noc.buffer_flits + on_link) * noc.flit_bytes


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
        # Here packets of all PEs meet, with a limit: a link without room stops the routers behind
        # it.
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
        # In order: if short packets could pass a long one that waits for room, it might never get
        # it.
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
        # A credit is for one network: each has a buffer of its own, so a full one never stops the
        # others.
        self._egresses[neighbour].notify(credit)

    def _credit_of(self, network: LinkNetwork) -> FabricTransfer:
        """The transfer that all credits for a network share."""
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
