"""Credits for the ingress buffers of a link between SIPs, at both of its ends.

A *virtual network* of a link is a message class and a layer (`SipFabric.layer`); each has a buffer
of its own at the receiver. The sender subtracts a packet from the room of its network, and adds it
again when its credit arrives.
"""

import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from runtime.core.simtime import PS_PER_NS, exact, ps_from_ns, serialisation_ps
from runtime.model.sip_fabric import SipFabric, crossing_ps
from runtime.model.topology import Topology
from sip_node.chip.fabric.packet import REQUESTS, FabricTransfer
from sip_node.chip.fabric.stalled import CLASSES


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

    def network(self, transfer: FabricTransfer, at: int, neighbour: int) -> LinkNetwork:
        """The network of a transfer on its crossing from SIP `at` to the next on its route.

        `neighbour` is the SIP at the other end, for either of the two.
        """
        message_class = 0 if transfer.kind in REQUESTS else 1
        layer = self._sips.layer(transfer.source_sip, at, transfer.sip)
        return LinkNetwork(neighbour, message_class * self._sips.layers + layer)

    def name(self, network: LinkNetwork) -> str:
        """`requests, layer 0`."""
        message_class, layer = divmod(network.number, self._sips.layers)
        return f"{CLASSES[message_class]}, layer {layer}"

    def has_room(self, network: LinkNetwork, nbytes: int) -> bool:
        """Whether the neighbour has room for a packet; an empty buffer takes one of any size."""
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
    round_trip_ps = 2 * (there_ps + serialisation_ps(topology.packet_bytes, bw_gbs))
    on_link = math.ceil(exact(bw_gbs) * round_trip_ps / PS_PER_NS / noc.flit_bytes)
    return (noc.vcs * noc.buffer_flits + on_link) * noc.flit_bytes
