"""Times of a packet alone through clocked routers with credits, in cycles of their clock.

The head of a packet takes all stages of a router; its other flits only traverse it (two cycles, one
in a router of one stage), one behind the other at the rate of the link:

    head at link i      sum over the routers before i of their stages, and over links of
                        wire + cycles of a flit - 1
    tail at the end     max over links i of (head at i + (flits - 1) * cycles per flit of i
                        + the rest of the way without the stages before the switch) + 1

A virtual channel with b flits of buffer carries at most b flits in a round trip of a credit, which
goes with a flit from switch to switch, and back.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil

from kernbench.oracle.theory.paths.route_times import RouteTimes
from kernbench.oracle.theory.paths.routes import IO, ROUTER_NS, KeyedHop
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.simtime import PS_PER_NS

_FIXED_NS = ("xbar.overhead_ns", IO + "noc.overhead_ns")
"""The overheads of routers outside the mesh of a cube: their stages."""


@dataclass(frozen=True)
class ClockedLink:
    """A link: stages of the router before it, then wire and cycles for a flit."""

    stages: int
    wire: int
    flit: int

    @property
    def traverse(self) -> int:
        """The cycles of a flit in the router after it has won the switch; 0 at a source."""
        # Route computation and allocation of a virtual channel are for the head alone. W. Dally, B.
        # Towles, Principles and Practices of Interconnection Networks, 2004, chapter 16.
        return min(self.stages, 2) + max(self.stages - 4, 0)


class ClockedRoutes:
    """The closed forms for one topology file."""

    def __init__(self, file: TopologyFile) -> None:
        self._file, self._times = file, RouteTimes(file)
        self.period_ps = ceil(PS_PER_NS / file.number("noc.clock_ghz"))

    def alone_cycles(self, route: Iterable[KeyedHop], flits: int) -> int:
        """Cycles from a clock edge to the arrival of the last flit of a packet."""
        head, tails = 0, list[int]()
        for link in self.links(route):
            head += link.stages - link.traverse
            tails.append(head + (flits - 1) * link.flit)
            passed = link.traverse + link.wire + link.flit - 1
            head, tails = head + passed, [tail + passed for tail in tails]
        return max(tails) + 1

    def cycles_per_flit(self, route: Iterable[KeyedHop]) -> Fraction:
        """The time between the flits of a long packet: one virtual channel at each link."""
        links = self.links(route)
        slowest = Fraction(max(link.flit for link in links))
        for link, after in pairwise(links):
            # The credit loop of the same chapter: the flit to the next router and through its
            # switch, and the credit back.
            round_trip = link.traverse + 2 * link.wire + link.flit - 1 + after.traverse
            # Behind a long or slow link the buffer holds what its longer round trip adds.
            added = ceil(Fraction(2 * (link.wire - 1) + link.flit - 1, link.flit))
            slowest = max(slowest, Fraction(round_trip, self._file["noc.buffer_flits"] + added))
        return slowest

    def links(self, route: Iterable[KeyedHop]) -> list[ClockedLink]:
        """The links of a route; hops without a bandwidth and UCIe ports are parts of wires."""
        links: list[ClockedLink] = []
        stages, delay_ps, gbs = 0, 0, ""
        hops = list(route)
        for index, hop in enumerate(hops):
            overhead_ps, wire_ps = self._times.delays_ps(hop)
            delay_ps += wire_ps
            gbs = hop.gbs or gbs
            is_router = hop.overhead_ns in (ROUTER_NS, *_FIXED_NS)
            if not is_router:
                delay_ps += overhead_ps
            if is_router or index == len(hops) - 1:
                links.append(ClockedLink(stages, self._cycles(delay_ps), self._flit_cycles(gbs)))
                delay_ps, gbs = 0, ""
                stages = (
                    self._file["noc.router_stages"]
                    if hop.overhead_ns == ROUTER_NS
                    else self._cycles(overhead_ps)
                )
        return links

    def _cycles(self, delay_ps: int) -> int:
        return max(1, ceil(Fraction(delay_ps, self.period_ps)))

    def _flit_cycles(self, gbs: str) -> int:
        flit_ps = self._file["noc.flit_bytes"] * PS_PER_NS / self._file.number(gbs)
        return max(1, ceil(flit_ps / self.period_ps))
