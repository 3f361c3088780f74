"""The closed form of the model: overheads + wires + bytes at the narrowest place, over a way that is written out.

Nothing here knows the routes or the servers of the product: a way is a list of components and wires, and the numbers come
from the text of the topology file. Every overhead and every wire is rounded to the nearest picosecond, the serialisation of
every packet is rounded up.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import yaml


@dataclass(frozen=True)
class Hop:
    """Into a component: the wire to it, its overhead, the bandwidth of the link. Each a key of the file, or a number."""

    mm: str
    overhead_ns: str
    gbs: str = ""


Way = tuple[Hop, ...]

ROUTER_NS, MESH_GBS = "cube.noc.router_overhead_ns", "cube.noc.link_bw_gbs"
UCIE_NS, UCIE_GBS = "ucie.overhead_ns", "ucie.bw_gbs"
IO = "sip.io_chiplet."

PE_TO_ROUTER: Way = (Hop("0", ROUTER_NS, "pe.to_router_bw_gbs"),)
ROUTER_TO_PE: Way = (Hop("0", "0", "pe.to_router_bw_gbs"),)
ROUTER_TO_SRAM: Way = (Hop("0", "cube.sram.overhead_ns", "cube.sram_to_router_bw_gbs"),)
SRAM_TO_ROUTER: Way = (Hop("0", ROUTER_NS, "cube.sram_to_router_bw_gbs"),)
XBAR_TO_HBM: Way = (Hop("0", "cube.hbm_ctrl.overhead_ns", "xbar.to_hbm_bw_gbs"),)
TO_XBAR: Way = (Hop("0", "xbar.overhead_ns", "xbar.to_hbm_bw_gbs"),)
XBAR_TO_PE: Way = (Hop("0", "0", "xbar.to_hbm_bw_gbs"),)
XBAR_TO_ROUTER: Way = (Hop("0", ROUTER_NS, "xbar.to_hbm_bw_gbs"),)
TO_NEXT_CUBE: Way = (
    Hop("2", UCIE_NS),
    Hop("sip.cube_gap_mm", UCIE_NS, UCIE_GBS),
    Hop("2", ROUTER_NS),
)
"""Router - 2 mm - port, the gap, port - 2 mm - router: ports stand in the middle of a side, between two routers."""
CUBE_TO_IO: Way = (
    Hop("2", UCIE_NS),
    Hop(IO + "gap_mm", UCIE_NS, UCIE_GBS),
    Hop("0", IO + "noc.overhead_ns"),
)
IO_TO_CUBE: Way = (Hop("0", UCIE_NS), Hop(IO + "gap_mm", UCIE_NS, UCIE_GBS), Hop("2", ROUTER_NS))
TO_NEXT_SIP: Way = (
    Hop("0", UCIE_NS),
    Hop("system.sips.spacing_mm", UCIE_NS, UCIE_GBS),
    Hop("0", IO + "noc.overhead_ns"),
)
HOST_TO_IO: Way = (
    Hop("0", IO + "pcie_ep.overhead_ns", IO + "pcie_ep.bw_gbs"),
    Hop("0", IO + "io_cpu.overhead_ns", IO + "io_cpu.bw_gbs"),
    Hop("0", IO + "noc.overhead_ns", IO + "noc.bw_gbs"),
)
IO_TO_HOST: Way = (
    Hop("0", IO + "io_cpu.overhead_ns", IO + "noc.bw_gbs"),
    Hop("0", IO + "pcie_ep.overhead_ns", IO + "io_cpu.bw_gbs"),
    Hop("0", "sip.host.overhead_ns", IO + "pcie_ep.bw_gbs"),
)


def through_switch() -> Way:
    """From SIP to SIP by the switch: its overhead, and the spacing twice."""
    spacing = "system.sips.spacing_mm"
    return (
        Hop("0", UCIE_NS),
        Hop(spacing, "system.components.switch.overhead_ns", UCIE_GBS),
        Hop(spacing, UCIE_NS, UCIE_GBS),
        Hop("0", IO + "noc.overhead_ns"),
    )


def mesh(hops: int, pitch_mm: str = "2") -> Way:
    """So many steps from router to router."""
    return (Hop(pitch_mm, ROUTER_NS, MESH_GBS),) * hops


class ClosedForm:
    """The closed forms of one topology file. All results are picoseconds."""

    def __init__(self, topology_yaml: str) -> None:
        self._content = yaml.safe_load(topology_yaml)

    def number(self, key: str) -> Fraction:
        """A value of the file by its key path, or the number that `key` is."""
        if key[0].isdigit():
            return Fraction(key)
        found = self._content
        for part in key.split("."):
            found = found[part]
        return Fraction(str(found))

    def ps(self, key: str) -> int:
        """A time given in nanoseconds, to the nearest picosecond."""
        return round(self.number(key) * 1000)

    def latency_ps(self, way: Way) -> int:
        """What the head needs: all overheads and all wires."""
        wires = (round(self.number(hop.mm) * self.number("ns_per_mm") * 1000) for hop in way)
        return sum(wires) + sum(self.ps(hop.overhead_ns) for hop in way)

    def narrowest_gbs(self, *ways: Way) -> Fraction:
        """The least bandwidth on any of the ways."""
        return min(self.number(hop.gbs) for way in ways for hop in way if hop.gbs)

    def ring_write_ps(self, way: Way, nbytes: int, packet: int, memory_gbs: str) -> int:
        """From the DMA channel to the last byte in a ring behind `way`, in packets of `packet` bytes each."""
        gbs = min([*self._gbs(way), self.number("pe.tcm.bw_gbs"), self.number(memory_gbs)])
        return (
            self.ps("pe.dma.overhead_ns")
            + self.latency_ps(way)
            + serialised_ps(_packets(nbytes, packet), gbs)
        )

    def ring_write_to_hbm_ps(self, way: Way, nbytes: int, packet: int) -> int:
        """The same for a ring in HBM whose packets are bursts, so that packet k is on pseudo channel k modulo their number.

        A channel serves one burst at a time. Its bursts come a round of channels apart; where a burst takes longer than a
        round, they wait for each other.
        """
        assert packet == self.number("hbm.burst_bytes")
        between_ps = ceil(packet / self.narrowest_gbs(way) * 1000)
        burst_ps, channels = (
            ceil(packet / self.channel_gbs() * 1000),
            int(self.number("hbm.num_pcs")),
        )
        done_ps: list[int] = []
        for index, size in enumerate(_packets(nbytes, packet)):
            rounds, channel = divmod(index, channels)
            start_ps = channel * between_ps + rounds * max(channels * between_ps, burst_ps)
            done_ps.append(start_ps + ceil(size / self.channel_gbs() * 1000))
        return self.ps("pe.dma.overhead_ns") + self.latency_ps(way) + max(done_ps)

    def announcement_ps(self, way: Way) -> int:
        """From the last byte in a ring to its slot being usable: a control packet to the PE, and its IPCQ."""
        flight_ps = (
            ceil(self.number("control_bytes") / self.narrowest_gbs(way) * 1000) if way else 0
        )
        return self.latency_ps(way) + flight_ps + self.ps("pe.ipcq.overhead_ns")

    def control_ps(self, way: Way) -> int:
        """A request or an acknowledgement, to its last byte."""
        return self.latency_ps(way) + ceil(
            self.number("control_bytes") / self.narrowest_gbs(way) * 1000
        )

    def bulk_ps(self, way: Way, nbytes: int, *ports_gbs: str) -> int:
        """Data to, from or past memories, to the last byte, in packets of the fabric.

        `ports_gbs` are the keys of memory ports at the ends of the way. A way that ends in an HBM slice, or else starts at
        one, passes its channels last or first.
        """
        sizes = _packets(nbytes, int(self.number("packet_bytes")))
        gbs = min([*self._gbs(way), *map(self.number, ports_gbs)])
        links_ps = [ceil(size / gbs * 1000) for size in sizes]
        slice_ps = [ceil(self.busiest_share(size) / self.channel_gbs() * 1000) for size in sizes]
        if way[-1:] == XBAR_TO_HBM:
            return self.latency_ps(way) + tandem_ps(links_ps, slice_ps)
        if way[:1] == TO_XBAR:
            return self.latency_ps(way) + tandem_ps(slice_ps, links_ps)
        return self.latency_ps(way) + sum(links_ps)

    def busiest_share(self, nbytes: int) -> int:
        """Bytes of an access that starts with a round of channels, on the channel that has most of them."""
        burst = int(self.number("hbm.burst_bytes"))
        rounds, rest = divmod(nbytes, burst * int(self.number("hbm.num_pcs")))
        return rounds * burst + min(rest, burst)

    def channel_gbs(self) -> Fraction:
        """What a pseudo channel delivers."""
        return self.number("hbm.pc_bw_gbs") * self.number("cube.hbm_ctrl.efficiency")

    def _gbs(self, way: Way) -> list[Fraction]:
        return [self.number(hop.gbs) for hop in way if hop.gbs]


def serialised_ps(sizes: Iterable[int], gbs: Fraction) -> int:
    """Packets one after the other; 1 GB/s is one byte a nanosecond; every packet is rounded up to the picosecond."""
    return sum(ceil(size / gbs * 1000) for size in sizes)


def tandem_ps(first_ps: Sequence[int], second_ps: Sequence[int]) -> int:
    """A stream of packets through two servers, cut-through: the longest path through the table of services.

    Packet k costs `first_ps[k]` or `second_ps[k]`; a path may change once, from the first server to the second.
    """
    changes = range(len(first_ps) + 1)
    return max(sum(first_ps[:change]) + sum(second_ps[change:]) for change in changes)


def _packets(nbytes: int, packet: int) -> list[int]:
    full, rest = divmod(nbytes, packet)
    return [packet] * full + ([rest] if rest else [])
