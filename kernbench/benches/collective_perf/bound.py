"""The least time of a collective from the call to the answer at the host, by any algorithm.

Two lower bounds hold at once, and the larger one counts. *Path*: the launch, the commands, and the
route by which the farthest byte that a rank needs reaches its memory, as part of an uncontended
packet. *Links*: the launch, and the bytes that must cross the links between SIPs, over the
bandwidth of the links; every link has its own bandwidth in each direction. docs/collectives.md
derives the formulas.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

from kernbench.benches.collective_perf.collective import PerfCase
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES, KernelCosts
from kernbench.oracle.theory.kernels.launches import LaunchTimes, submission_ps
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.least_latencies import least_router_ns, with_least_latencies
from kernbench.oracle.theory.paths.routes import UCIE_GBS, RouteEnd
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.model.topology import Topology

Pe = tuple[int, int]
"""Cube and PE."""


@dataclass(frozen=True)
class TimeBound:
    """Two lower bounds of the time of an iteration, and the share of the launch in both."""

    launch_ps: int = 0
    path_ps: int = 0
    links_ps: int = 0

    @property
    def time_ps(self) -> int:
        """The larger of the two."""
        return max(self.path_ps, self.links_ps)


@dataclass(frozen=True)
class _LaunchParts:
    """Parts of a launch: on the way from and to the host, and from stamp to start with the report;
    the routes to the IO NoC and back of the nearest PE, and of the farthest beyond its report.
    """

    host_ps: int
    each_ps: int
    inside_ps: int
    longest_ps: int


def mean(bounds: Sequence[TimeBound]) -> TimeBound:
    """A bound of the mean time of the ranks that have these bounds."""
    count = len(bounds)
    return TimeBound(
        sum(each.launch_ps for each in bounds) // count,
        sum(each.path_ps for each in bounds) // count,
        sum(each.links_ps for each in bounds) // count,
    )


class CollectiveBounds:
    """The bounds on one topology, for buffers on at most `cubes`, `pes` PEs of each, and the mean
    of `iters` iterations.
    """

    def __init__(self, topology: Topology, cubes: Sequence[int], pes: int, iters: int = 1) -> None:
        file = TopologyFile(topology.values())
        self._file = with_least_latencies(file, router_ns=least_router_ns(file))
        self._plan, self._sips = FloorPlan(self._file), topology.sips
        self._spread, self._iters = (cubes, pes), iters
        self._commands = KernelCosts(self._file, self._file["packet_bytes"])
        # The route out of a chip ends in its own IO NoC; a crossing ends in that of the next SIP.
        self._crossing_ps = self._commands.times.latency_ps(self._plan.crossing(0, 1))

    def of(self, case: PerfCase, *, apart: bool = False) -> tuple[TimeBound, ...]:
        """The bound of each rank if all start together; 0 for a single rank.

        With `apart`, of each rank alone: what it needs of others may have been sent before its
        start, so that no route between ranks is part of its bound. A collective with a root is
        bounded like this in any case: a rank may run ahead of those that need its bytes.
        """
        if case.ranks == 1:
            return (TimeBound(),)
        cubes, count = case.spread(*self._spread)
        pes = [(cube, pe) for cube in cubes for pe in range(count)]
        apart = apart or case.collective.rooted
        launch = self._launch(pes)
        # The same for every rank.
        all_ps = bytes_ps(self._in_all(case), self._all_gbs)
        return tuple(
            self._of_rank(case, rank, launch, all_ps, apart=apart) for rank in range(case.ranks)
        )

    def _launch(self, pes: Sequence[Pe]) -> "_LaunchParts":
        """The times of a launch on `pes`, which are those of every rank."""
        times = LaunchTimes(self._file, pes)
        reports_ps = [times.report_of_ps(pe) for pe in pes]
        inside_ps = [self._inside_ps(pe) for pe in pes]
        return _LaunchParts(
            # The way to the IO_CPU of all launches but the first is hidden, as are the answers.
            host_ps=submission_ps(self._file, copies=False) + times.to_io_ps + times.answer_ps,
            each_ps=times.stamp_ps + min(reports_ps),
            inside_ps=min(inside_ps),
            longest_ps=max(map(sum, zip(inside_ps, reports_ps, strict=True))) - min(reports_ps),
        )

    def _of_rank(
        self, case: PerfCase, rank: int, launch: "_LaunchParts", all_ps: Fraction, *, apart: bool
    ) -> TimeBound:
        hops = self._hops(case, rank)
        on_links_ps = self._on_links_ps(case, rank, all_ps) if hops else 0
        if apart:
            kernel_ps, links_ps = self._alone_ps(case, rank), on_links_ps
        else:
            kernel_ps = self._path_ps(case, hops) + launch.longest_ps
            # The bytes of one call may move while another one is launched.
            first_ps = launch.host_ps + launch.each_ps + self._first_ps(launch.inside_ps)
            links_ps = first_ps // self._iters + on_links_ps
        launch_ps = launch.host_ps // self._iters + launch.each_ps
        return TimeBound(launch_ps, launch_ps + kernel_ps, links_ps)

    def _alone_ps(self, case: PerfCase, rank: int) -> int:
        """A kernel loads an element and sends it; one that has nothing to send receives it."""
        costs = self._commands
        if case.collective.name == "broadcast" and rank != case.root:
            return costs.issue_ps + costs.kept_ps(1)
        return costs.load_ps(1) + costs.send_ps(1)

    def _path_ps(self, case: PerfCase, hops: int) -> int:
        """A kernel without routes inside SIPs: load, send, receive from the farthest rank, keep."""
        costs, crossings_ps = self._commands, hops * self._crossing_ps
        # The bytes of two ranks are added at one of them, or between them.
        added_ps = costs.copy_ps(1) + costs.add_ps(ITEM_BYTES) if case.collective.reduces else 0
        sent_ps = costs.load_ps(1) + costs.issue_ps + costs.commands.write_start_ps
        return sent_ps + crossings_ps + costs.ipcq_ps + added_ps + costs.kept_ps(1)

    def _first_ps(self, inside_ps: int) -> int:
        """A kernel until its first byte is on a link, and from its last one there to its end."""
        costs = self._commands
        sent_ps = costs.load_ps(1) + costs.issue_ps + costs.commands.write_start_ps
        return sent_ps + inside_ps + self._crossing_ps + costs.ipcq_ps + costs.kept_ps(1)

    def _on_links_ps(self, case: PerfCase, rank: int, all_ps: Fraction) -> int:
        """The bytes that must cross links, at two cuts: around the SIP, and through all links."""
        return ceil(max(bytes_ps(_of_a_rank(case), self._into_gbs(rank)), all_ps))

    @cached_property
    def _all_gbs(self) -> Fraction:
        """The bandwidth of the links into all SIPs."""
        return sum(map(self._into_gbs, range(self._sips)), Fraction(0))

    def _into_gbs(self, sip: int) -> Fraction:
        """The bandwidth of all links into a SIP; it sends at the same rate."""
        # To a switch a SIP has one port, which carries the bytes for all its neighbours.
        links = 1 if self._plan.is_switched else len(self._plan.neighbours(sip))
        return links * self._file.number(UCIE_GBS)

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
                    * sum(self._plan.sip_distance(a, b) for a in range(ranks) for b in range(ranks))
                )
            case "sendrecv":
                return size * sum(
                    self._plan.sip_distance(rank, (rank + 1) % ranks) for rank in range(ranks)
                )
            case _:
                # One link for each other rank suffices: a SIP forwards what others need as well.
                return (ranks - 1) * size

    def _hops(self, case: PerfCase, rank: int) -> int:
        """Links between SIPs on the longest route that a byte must take to a rank; 0 if it needs no
        byte of another rank.
        """
        match case.collective.name:
            case "broadcast":
                return self._plan.sip_distance(case.root, rank)
            case "sendrecv":
                return self._plan.sip_distance((rank - 1) % case.ranks, rank)
            case "reduce" if rank != case.root:
                return 0
            case _:
                return max(self._plan.sip_distance(other, rank) for other in range(case.ranks))

    def _inside_ps(self, pe: Pe) -> int:
        """Latency from a PE to the IO NoC and back."""
        ends = RouteEnd("pe", 0, *pe), RouteEnd("io_noc")
        routes = self._plan.route(*ends), self._plan.route(*ends[::-1])
        return sum(map(self._commands.times.latency_ps, routes))


def _of_a_rank(case: PerfCase) -> Fraction:
    """The most bytes that a rank must receive, or that it alone must send."""
    return (
        Fraction(case.size_bytes * (case.ranks - 1), case.ranks)
        if case.collective.parts
        else Fraction(case.size_bytes)
    )
