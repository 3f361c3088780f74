"""Times of uncontended messages along routes of one topology file, in picoseconds.

The time of a hop stands here and nowhere else: its wire and its overhead are rounded to the nearest
picosecond, and its link moves bytes at its bandwidth.
"""

from fractions import Fraction

from kernbench.oracle.theory.bandwidths import slice_gbs
from kernbench.oracle.theory.commands import FixedTimes
from kernbench.oracle.theory.hbm import read_latency_ps
from kernbench.oracle.theory.parts import PartNumbers
from kernbench.oracle.theory.paths.least_latencies import is_clocked
from kernbench.oracle.theory.paths.routes import LINK_LABELS, TCM_GBS, KeyedHop, Route, RouteEnd
from kernbench.oracle.theory.paths.transfers import Leg, LegName, TimedHop
from kernbench.oracle.theory.servers import PacketWindow, Serialiser, serialised_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.simtime import PS_PER_NS


class RouteTimes:
    """The times of one topology file."""

    def __init__(self, file: TopologyFile) -> None:
        self.file, self.commands = file, FixedTimes(file)
        self.parts = PartNumbers(file)
        self._is_clocked = is_clocked(file)
        # A route has few different hops, and fractions are slow to multiply.
        self._delays_ps = dict[tuple[KeyedHop, int, str], tuple[int, int]]()

    def hops(self, route: Route, source: RouteEnd | None = None) -> tuple[TimedHop, ...]:
        """The hops with their times; the links have the names of their ends, from `source` on."""
        hops: list[TimedHop] = []
        here = (source.sip, source.name) if source else (0, "")
        for hop in route:
            there = hop.sip, hop.node
            overhead_ps, wire_ps = self.delays_ps(hop)
            link = self._link(hop.gbs, here, there) if hop.gbs else None
            hops.append(TimedHop(in_system(hop.node, hop.sip), overhead_ps, wire_ps, link))
            here = there
        return tuple(hops)

    def latency_ps(self, route: Route) -> int:
        """Time of the head of a message: all overheads and all wires."""
        return sum(sum(self.delays_ps(hop)) for hop in route)

    def narrowest_gbs(self, route: Route, *ports_gbs: str) -> Fraction:
        """The least bandwidth on a route; `ports_gbs` are keys of memory ports at its ends."""
        keys = [hop.gbs for hop in route if hop.gbs]
        return min(map(self.file.number, (*keys, *ports_gbs)))

    def control(self, name: LegName, hops: tuple[TimedHop, ...]) -> Leg:
        """The leg of a request or of an acknowledgement."""
        size = self.file["control_bytes"]
        return Leg(name, hops, size, size)

    def control_ps(self, route: Route) -> int:
        """A request or an acknowledgement, until its last byte has arrived."""
        return self.control("request", self.hops(route)).total_ps

    def data(
        self,
        hops: tuple[TimedHop, ...],
        nbytes: int,
        source: Serialiser | None = None,
        sink: Serialiser | None = None,
        window: PacketWindow | None = None,
    ) -> Leg:
        """The leg of data in packets of the fabric, between the memories `source` and `sink`."""
        return Leg("data", hops, nbytes, self.file["packet_bytes"], source, sink, window)

    def ring_write_ps(self, route: Route, nbytes: int, packet_bytes: int, memory_gbs: str) -> int:
        """Time from the DMA channel to the last byte in a receive ring; packets of `packet_bytes`.

        `memory_gbs` is the key of the bandwidth of the memory that holds the ring.
        """
        # The sender reads each slot from its TCM: the port there is the first server.
        gbs = self.narrowest_gbs(route, TCM_GBS, memory_gbs)
        drain = serialised_ps(nbytes, packet_bytes, gbs)
        return self.commands.write_start_ps + self.latency_ps(route) + drain

    def announcement_ps(self, route: Route) -> int:
        """Time from the last byte of a slot in its ring until the slot is usable by the receiver.

        A control packet takes `route` to the PE, where the IPCQ handles it. The route is empty
        where the ring is in the TCM of that PE.
        """
        # Inside a PE the announcement is a signal, not a packet: no bytes to serialise.
        return (self.control_ps(route) if route else 0) + self.commands.ipcq_ps

    def first_byte(self, name: str = "", part: TopologyFile | None = None) -> TimedHop:
        """The wait of a read for its first byte in an HBM slice."""
        return TimedHop(f"{name}.read", read_latency_ps(part or self.file), wire_ps=0)

    def slice(self, name: str = "", part: TopologyFile | None = None) -> Serialiser:
        """An HBM slice: all its pseudo channels; `part` is the file with its own values."""
        file = part or self.file
        return Serialiser(
            bw_gbs=slice_gbs(file),
            channels=file["hbm.num_pcs"],
            burst_bytes=file["hbm.burst_bytes"],
            name=name,
            label="HBM slice",
            is_lower_bound=file["hbm.model"] == "banks",
        )

    def tcm(self, name: str = "", part: TopologyFile | None = None) -> Serialiser:
        """The port of the TCM of a PE."""
        gbs = (part or self.file).number(TCM_GBS)
        return Serialiser(gbs, name=f"{name}.tcm", label="TCM port")

    def delays_ps(self, hop: KeyedHop) -> tuple[int, int]:
        """The overhead and the wire of a hop."""
        # Equal hops into different components may differ by the values of these.
        key = (hop, 0, "") if self.parts.is_uniform else (hop, hop.sip, hop.node)
        if key not in self._delays_ps:
            number = self.file.number
            # Rounded per wire, since the simulator stores each wire delay as whole picoseconds.
            wire_ps = round(number(hop.mm) * number("ns_per_mm") * PS_PER_NS)
            own = self.parts.file_of((hop.sip, hop.node)) if hop.node else self.file
            self._delays_ps[key] = own.ps(hop.overhead_ns), wire_ps
        return self._delays_ps[key]

    def _link(self, gbs: str, here: tuple[int, str], there: tuple[int, str]) -> Serialiser:
        return Serialiser(
            bw_gbs=self.parts.link_gbs(gbs, here, there),
            name=f"{in_system(here[1], here[0])}->{in_system(there[1], there[0])}",
            label=LINK_LABELS[gbs],
            # Clocked routers take whole cycles.
            is_lower_bound=self._is_clocked,
        )


def in_system(name: str, sip: int) -> str:
    """The name of a component of a SIP: with the SIP, but for SIP 0 and for the switch."""
    return f"sip{sip}.{name}" if sip else name
