"""Closed form of an uncontended transfer: overheads + wires + drain.

A transfer consists of one or two messages, its legs: a request and its data, or data and their
acknowledgement. The head of a message pays each overhead and each wire of its route; then its bytes
drain through the slowest server (formula in `servers`). Overheads and wires are rounded to the
nearest picosecond, the time of each packet on a link is rounded up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from kernbench.theory.bandwidths import slice_gbs
from kernbench.theory.hbm import read_latency_ps
from kernbench.theory.routes import TCM_GBS, TO_XBAR, XBAR_TO_HBM, Route
from kernbench.theory.servers import PacketWindow, Serialiser, drain_ps, serialised_ps, transfer_ps
from kernbench.theory.topology_file import TopologyFile
from runtime.core.simtime import PS_PER_NS

LegName = Literal["request", "data", "ack"]


@dataclass(frozen=True)
class TimedHop:
    """One hop into the component `node`; `link` is None where the link has no bandwidth limit."""

    node: str
    overhead_ps: int
    wire_ps: int
    link: Serialiser | None = None


@dataclass(frozen=True)
class Leg:
    """One message of a transfer: `nbytes` in packets of `packet_bytes`, from `source` to `sink`.

    `source` and `sink` are the memories at the ends of the route, where these limit the bandwidth.
    `window` is the limit of a DMA that reads.
    """

    name: LegName
    hops: tuple[TimedHop, ...]
    nbytes: int
    packet_bytes: int
    source: Serialiser | None = None
    sink: Serialiser | None = None
    window: PacketWindow | None = None

    @property
    def overhead_ps(self) -> int:
        """Sum of the overheads of all components entered."""
        return sum(hop.overhead_ps for hop in self.hops)

    @property
    def wire_ps(self) -> int:
        """Sum of the delays of all wires."""
        return sum(hop.wire_ps for hop in self.hops)

    @property
    def drain_ps(self) -> int:
        """Time from the first to the last byte at the end: exact, or a lower bound, see `exact`."""
        if not self.exact:
            # No server can be faster than all its bytes at once: a bound without any assumption.
            return max(server.service_ps(self.nbytes) for server in self._servers())
        return drain_ps(self.nbytes, self.packet_bytes, self._servers(), self.window)

    @property
    def exact(self) -> bool:
        """Whether the formula is exact.

        It is not where a packet leaves some channels of a memory idle: the packets of a message
        then use different channels, and the most loaded channel delays packets which need others.
        Nor is it for a memory with rows, and for a link between routers with credits.
        """
        if any(server.is_lower_bound for server in self._servers()):
            return False
        whole_rounds = (
            self.packet_bytes % server.round_bytes == 0
            for server in self._servers()
            if server.channels > 1
        )
        return self.nbytes <= self.packet_bytes or all(whole_rounds)

    @property
    def bottleneck(self) -> Serialiser:
        """The server with the longest time for these bytes; the first of several.

        For more bytes than the window holds it may be the window, as a server of its bandwidth.
        """
        slowest = max(self._servers(), key=lambda server: server.service_ps(self.nbytes))
        if self.window is None or self.nbytes <= self.window.packets * self.packet_bytes:
            return slowest
        gbs = self.window.gbs(self.packet_bytes, slowest.service_ps(self.packet_bytes))
        limit = Serialiser(gbs, name="window", label="DMA window")
        return max((slowest, limit), key=lambda server: server.service_ps(self.nbytes))

    def _servers(self) -> Iterator[Serialiser]:
        """In the order in which the bytes pass them."""
        if self.source:
            yield self.source
        for hop in self.hops:
            if hop.link:
                yield hop.link
        if self.sink:
            yield self.sink


@dataclass(frozen=True)
class TransferForm:
    """The closed form of a transfer: its legs one after the other."""

    legs: tuple[Leg, ...]

    @property
    def overhead_ps(self) -> int:
        """Sum of all overheads, in both directions."""
        return sum(leg.overhead_ps for leg in self.legs)

    @property
    def wire_ps(self) -> int:
        """Sum of all wire delays, in both directions."""
        return sum(leg.wire_ps for leg in self.legs)

    @property
    def drain_ps(self) -> int:
        """Drain of the data, and of the request or acknowledgement."""
        return sum(leg.drain_ps for leg in self.legs)

    @property
    def total_ps(self) -> int:
        """Overheads + wires + drain."""
        return self.overhead_ps + self.wire_ps + self.drain_ps

    @property
    def exact(self) -> bool:
        """Whether `total_ps` is the time of the transfer; otherwise it is a lower bound."""
        return all(leg.exact for leg in self.legs)

    @property
    def bottleneck(self) -> Serialiser:
        """The server that limits the bandwidth of the data."""
        [data] = [leg for leg in self.legs if leg.name == "data"]
        return data.bottleneck

    def agrees_with(self, measured_ps: int) -> bool:
        """Whether a measured time equals the closed form, or is not below the lower bound."""
        return measured_ps == self.total_ps if self.exact else measured_ps >= self.total_ps


class RouteTimes:
    """Times of uncontended messages along routes of one topology file, in picoseconds."""

    def __init__(self, file: TopologyFile) -> None:
        self.file = file

    def latency_ps(self, route: Route) -> int:
        """Time of the head of a message: all overheads and all wires."""
        number, ps_per_mm = self.file.number, self.file.number("ns_per_mm") * PS_PER_NS
        # Rounded per wire, since the simulator stores each wire delay as whole picoseconds.
        wires_ps = sum(round(number(hop.mm) * ps_per_mm) for hop in route)
        return wires_ps + sum(self.file.ps(hop.overhead_ns) for hop in route)

    def narrowest_gbs(self, route: Route, *ports_gbs: str) -> Fraction:
        """The least bandwidth on a route; `ports_gbs` are keys of memory ports at its ends."""
        keys = [hop.gbs for hop in route if hop.gbs]
        return min(map(self.file.number, (*keys, *ports_gbs)))

    def control_ps(self, route: Route) -> int:
        """A request or an acknowledgement, until its last byte has arrived."""
        return self.latency_ps(route) + self._control_drain_ps(route)

    def announcement_ps(self, route: Route) -> int:
        """From the last byte of a slot in its ring until the slot is usable by the receiver.

        A control packet takes `route` to the PE, where the IPCQ handles it. The route is empty
        where the ring is in the TCM of that PE.
        """
        # Inside a PE the announcement is a signal, not a packet: no bytes to serialise.
        drain = self._control_drain_ps(route) if route else 0
        return self.latency_ps(route) + drain + self.file.ps("pe.ipcq.overhead_ns")

    def ring_write_ps(self, route: Route, nbytes: int, packet_bytes: int, memory_gbs: str) -> int:
        """From the DMA channel to the last byte in a receive ring, in packets of `packet_bytes`.

        `memory_gbs` is the key of the bandwidth of the memory that holds the ring.
        """
        # The sender reads each slot from its TCM: the port there is the first server.
        gbs = self.narrowest_gbs(route, TCM_GBS, memory_gbs)
        drain = serialised_ps(nbytes, packet_bytes, gbs)
        return self.file.ps("pe.dma.overhead_ns") + self.latency_ps(route) + drain

    def bulk_ps(self, route: Route, nbytes: int, *ports_gbs: str) -> int:
        """Data from or to a memory, until the last byte has arrived, in packets of the fabric.

        On a route that ends or starts in an HBM slice, the pseudo channels are the last or the
        first server. The narrowest link stands for all links: the time of a packet is proportional
        to its size on each of them. Data that leave a slice wait for its latency first.
        """
        servers = self._bulk_servers(route, *ports_gbs)
        return self._first_byte_ps(route) + drain_ps(nbytes, self.file["packet_bytes"], servers)

    def read_ps(self, there: Route, back: Route, nbytes: int, *ports_gbs: str) -> int:
        """A read by a DMA without its overhead: requests on `there`, data on `back`.

        Each packet of data is requested, and `pe.dma.outstanding` of them may be in flight.
        """
        file, servers = self.file, self._bulk_servers(back, *ports_gbs)
        latency_ps = self.control_ps(there) + self._first_byte_ps(back)
        window = PacketWindow(file["pe.dma.outstanding"], latency_ps)
        return latency_ps + drain_ps(nbytes, file["packet_bytes"], servers, window)

    def read_gbs(self, there: Route, back: Route, *ports_gbs: str) -> Fraction:
        """The steady rate of long reads by a DMA: min(links and memories, window / round trip)."""
        file, servers = self.file, self._bulk_servers(back, *ports_gbs)
        packet_ps = max(server.service_ps(file["packet_bytes"]) for server in servers)
        latency_ps = self.control_ps(there) + self._first_byte_ps(back)
        window = PacketWindow(file["pe.dma.outstanding"], latency_ps)
        served_gbs = Fraction(file["packet_bytes"] * PS_PER_NS, packet_ps)
        return min(served_gbs, window.gbs(file["packet_bytes"], packet_ps))

    def _first_byte_ps(self, route: Route) -> int:
        """The head of data on a route; from a slice it waits for the latency of the slice first."""
        # The route of a PE to its own slice begins at the crossbar, too.
        waits = route[:1] == TO_XBAR and route[-1:] != XBAR_TO_HBM
        return self.latency_ps(route) + (read_latency_ps(self.file) if waits else 0)

    def _bulk_servers(self, route: Route, *ports_gbs: str) -> list[Serialiser]:
        servers = [Serialiser(self.narrowest_gbs(route, *ports_gbs))]
        if route[-1:] == XBAR_TO_HBM:
            servers.append(self._slice())
        elif route[:1] == TO_XBAR:
            servers.insert(0, self._slice())
        return servers

    def _control_drain_ps(self, route: Route) -> int:
        return transfer_ps(self.file["control_bytes"], self.narrowest_gbs(route))

    def _slice(self) -> Serialiser:
        file = self.file
        return Serialiser(slice_gbs(file), file["hbm.num_pcs"], file["hbm.burst_bytes"])
