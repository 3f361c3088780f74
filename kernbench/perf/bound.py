"""The least time of a collective on the links of a topology, by any algorithm.

Two lower bounds hold at once, and the larger one counts. *Bandwidth*: the bytes that must cross the
links between SIPs, over the bandwidth of the links; every link has its own bandwidth in each
direction. *Latency*: the longest route that a byte must take, as part of an uncontended packet.
docs/collectives.md derives the formulas.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from kernbench.benches.collective_perf.collective import PerfCase
from kernbench.theory.roofline import bytes_ps
from runtime.core.simtime import exact
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from runtime.model.sip_fabric import SipFabric, crossing_ps
from runtime.model.topology import Topology


@dataclass(frozen=True)
class TimeBound:
    """The two bounds: the latency of a byte on the longest route, and all bytes over the links."""

    latency_ps: int
    links_ps: int

    @property
    def time_ps(self) -> int:
        """The larger of the two."""
        return max(self.latency_ps, self.links_ps)


class CollectiveBounds:
    """The bounds on one topology, for buffers on at most `cubes` cubes and `pes` PEs of each."""

    def __init__(self, topology: Topology, cubes: int, pes: int) -> None:
        self._graph, self._fabric = ChipGraph(topology), SipFabric(topology)
        self._routes = ChipRoutes(self._graph)
        self._spread = cubes, pes
        # The route out of a chip ends in its own IO NoC; a crossing ends in that of the next SIP.
        self._crossing_ps = (
            crossing_ps(topology) + self._graph.nodes[self._graph.io_noc].overhead_ps
        )

    def of(self, case: PerfCase) -> TimeBound:
        """The bound of one row; 0 for a single rank."""
        if case.ranks == 1:
            return TimeBound(0, 0)
        all_gbs = sum((exact(link.bw_gbs) for link in self._fabric.links), Fraction(0))
        # Two cuts of the network: around one SIP, and through all links at once.
        on_links_ps = max(
            bytes_ps(_of_a_rank(case), self._narrowest_gbs()),
            bytes_ps(self._in_all(case), all_gbs),
        )
        nearest_ps, farthest_ps = self._inside_ps(case)
        # The links are idle until the first byte has come from the nearest PE. The latency bound
        # takes the farthest PE, because the collective ends with the last byte of any PE.
        return TimeBound(
            farthest_ps + self._crossings(case) * self._crossing_ps,
            nearest_ps + self._crossing_ps + ceil(on_links_ps),
        )

    def _narrowest_gbs(self) -> Fraction:
        """The least bandwidth of a SIP over all its links; it receives at the same rate."""
        # Links are stored for each direction, and both have the same bandwidth.
        gbs = dict.fromkeys(range(self._fabric.sips), Fraction(0))
        for link in self._fabric.links:
            gbs[link.source] += exact(link.bw_gbs)
        return min(gbs.values())

    def _in_all(self, case: PerfCase) -> int:
        """Bytes that links carry, counted once for every link that they cross."""
        size, ranks = case.size_bytes, case.ranks
        match case.collective.name:
            case "all_reduce":
                # n - 1 transfers add up n contributions, and n - 1 ranks then receive the sum.
                return 2 * (ranks - 1) * size
            case "alltoall":
                # No two ranks share a part, so each part crosses all links of its route.
                return (
                    size
                    // ranks
                    * sum(self._distance(a, b) for a in range(ranks) for b in range(ranks))
                )
            case "sendrecv":
                return size * sum(self._distance(rank, (rank + 1) % ranks) for rank in range(ranks))
            case _:
                # One link for each other rank suffices: a SIP forwards what others need as well.
                return (ranks - 1) * size

    def _crossings(self, case: PerfCase) -> int:
        """Links between SIPs on the longest route that a byte must take."""
        ranks = range(case.ranks)
        match case.collective.name:
            case "broadcast":
                return max(self._distance(case.root, rank) for rank in ranks)
            case "reduce":
                return max(self._distance(rank, case.root) for rank in ranks)
            case "sendrecv":
                return max(self._distance(rank, (rank + 1) % case.ranks) for rank in ranks)
            case _:
                return self._fabric.diameter

    def _distance(self, rank: int, other: int) -> int:
        return len(self._fabric.path(rank, other)) - 1

    def _inside_ps(self, case: PerfCase) -> tuple[int, int]:
        """Latency from a PE of the buffer to the IO NoC and back: the least and the largest."""
        io_noc, route = self._graph.io_noc, self._routes.route
        cubes, pes = case.spread(*self._spread)
        nodes = [self._graph.pe(cube, pe) for cube in range(cubes) for pe in range(pes)]
        latencies_ps = [route(pe, io_noc).latency_ps + route(io_noc, pe).latency_ps for pe in nodes]
        return min(latencies_ps), max(latencies_ps)


def _of_a_rank(case: PerfCase) -> Fraction:
    """Bytes that a rank must send or receive; of a buffer in parts, its own part does not move."""
    return (
        Fraction(case.size_bytes * (case.ranks - 1), case.ranks)
        if case.collective.parts
        else Fraction(case.size_bytes)
    )
