"""Closed forms of kernel launches from the host of SIP 0, in picoseconds.

    host --launch--> IO_CPU --> M_CPU --> PE ==kernel== PE --> M_CPU --report--> IO_CPU --> host
          to_io_ps   |<--------------------- period_ps ----------------------->|   answer_ps

The IO_CPU stamps a common start that the command for every PE precedes on an idle chip, plus a
margin. It starts the next launch of a stream when it has the report of the launch before, so N
launches take to_io + N x period + answer; the way from the host of all but the first is hidden. A
host that needs longer for a command than a period is the bottleneck: N x overhead instead.
"""

from collections.abc import Sequence

from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.route_times import RouteTimes
from kernbench.oracle.theory.paths.routes import (
    HOST_TO_IO,
    IO_TO_HOST,
    M_CPU_GBS,
    MESH_GBS,
    PE_GBS,
    UCIE_GBS,
    Route,
    RouteEnd,
)
from kernbench.oracle.theory.servers import transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile

HEADER_BYTES, ARGUMENT_BYTES = 64, 8
IO_NOC_GBS = "sip.io_chiplet.noc.bw_gbs"
MARGIN_NS = "sip.io_chiplet.io_cpu.launch_margin_ns"
_IO_CPU = RouteEnd("io_cpu")

PeOfSip = tuple[int, int]
"""Cube and PE."""


class LaunchRoutes:
    """The ways of the commands of launches with `arguments` arguments, and of the reports."""

    def __init__(self, file: TopologyFile, arguments: int = 0) -> None:
        self.file, self.times, self._plan = file, RouteTimes(file), FloorPlan(file)
        self.nbytes = max(HEADER_BYTES + ARGUMENT_BYTES * arguments, file["control_bytes"])

    def down(self, cube: int) -> Route:
        """Route from the IO_CPU to the M_CPU of a cube."""
        return self._plan.route(_IO_CPU, RouteEnd("m_cpu", 0, cube))

    def up(self, cube: int) -> Route:
        """Route from the M_CPU of a cube to the IO_CPU."""
        return self._plan.route(RouteEnd("m_cpu", 0, cube), _IO_CPU)

    def spread(self, pe: int) -> Route:
        """Route from an M_CPU to a PE of its cube."""
        return self._plan.route(RouteEnd("m_cpu", 0, 0), RouteEnd("pe", 0, 0, pe))

    def between_m_cpus(self, cube: int, other: int) -> Route:
        """Route from the M_CPU of a cube to that of another cube."""
        return self._plan.route(RouteEnd("m_cpu", 0, cube), RouteEnd("m_cpu", 0, other))

    def collect(self, pe: int) -> Route:
        """Route from a PE to the M_CPU of its cube."""
        return self._plan.route(RouteEnd("pe", 0, 0, pe), RouteEnd("m_cpu", 0, 0))

    @property
    def to_io_ps(self) -> int:
        """Time from the submission by the host until the IO_CPU has the whole launch."""
        return self.times.latency_ps(HOST_TO_IO[:2]) + self.launch_link_ps

    @property
    def launch_link_ps(self) -> int:
        """The time that a launch occupies the narrowest link between host and IO_CPU."""
        return transfer_ps(self.nbytes, self.times.narrowest_gbs(HOST_TO_IO[:2]))

    @property
    def answer_ps(self) -> int:
        """Time from the answer of the IO_CPU until the host has received it."""
        return self.times.control_ps(IO_TO_HOST[1:])

    def report_of_ps(self, pe: PeOfSip) -> int:
        """Time from the end of a kernel on a PE until the IO_CPU has the report of its M_CPU."""
        return self.times.control_ps(self.collect(pe[1])) + self.times.control_ps(self.up(pe[0]))

    @property
    def event_ps(self) -> int:
        """An event of an idle host: a control packet to the IO_CPU, and its answer."""
        return self.times.control_ps(HOST_TO_IO[:2]) + self.answer_ps

    def on_link_ps(self, key_path: str, commands: int = 1) -> int:
        """The time of a packet with the commands of some PEs on a link of that bandwidth."""
        return transfer_ps(commands * self.nbytes, self.file.number(key_path))


class LaunchTimes(LaunchRoutes):
    """The times of launches on `pes`, with `arguments` arguments.

    `reporting` is the PE whose kernel ends last, by default the only one.
    """

    def __init__(
        self,
        file: TopologyFile,
        pes: Sequence[PeOfSip],
        arguments: int = 0,
        reporting: PeOfSip | None = None,
    ) -> None:
        super().__init__(file, arguments)
        self._cubes: dict[int, list[int]] = {}
        for cube, pe in pes:
            self._cubes.setdefault(cube, []).append(pe)
        self._reporting = pes[0] if reporting is None else reporting

    @property
    def stamp_ps(self) -> int:
        """Time from the stamp of the IO_CPU to the start of the kernel: margin and longest route.

        The commands of all cubes follow each other on the narrowest link on the way to an M_CPU,
        and those of a cube again on the way from there to the PEs. To these bytes the latency of
        the farthest PE is added. The bandwidths are those of all links of such routes.
        """
        # The IO_CPU stamps before it sends: the stamp covers the last command to the farthest PE.
        number = self.file.number
        down = min(map(number, (IO_NOC_GBS, UCIE_GBS, MESH_GBS, M_CPU_GBS)))
        spread = min(map(number, (M_CPU_GBS, MESH_GBS, PE_GBS)))
        all_ps = sum(transfer_ps(self.nbytes * len(pes), down) for pes in self._cubes.values())
        latency_ps = self.times.latency_ps
        longest_ps = max(
            latency_ps(self.down(cube))
            + len(pes) * transfer_ps(self.nbytes, spread)
            + max(latency_ps(self.spread(pe)) for pe in pes)
            for cube, pes in self._cubes.items()
        )
        return self.file.ps(MARGIN_NS) + all_ps + longest_ps

    @property
    def start_ps(self) -> int:
        """Time from the submission on an ideal host to the start of the kernel."""
        return self.to_io_ps + self.stamp_ps

    @property
    def report_ps(self) -> int:
        """Time from the end of the last kernel until the IO_CPU has the report of its M_CPU."""
        return self.report_of_ps(self._reporting)

    def period_ps(self, kernel_ps: int) -> int:
        """Time from the start of one launch of a stream to the start of the next."""
        return self.stamp_ps + kernel_ps + self.report_ps

    def stream_ps(self, launches: int, kernel_ps: int) -> int:
        """N launches on one stream, from the first submission to the last answer."""
        return self.to_io_ps + launches * self.period_ps(kernel_ps) + self.answer_ps

    def host_bound_ps(self, launches: int, kernel_ps: int, overhead_ps: int) -> int:
        """N launches of a host that needs `overhead_ps`, at least a period, for each of them."""
        # The launches before the last one are hidden behind the overheads of the host.
        return launches * overhead_ps + self.stream_ps(1, kernel_ps)


class LateLaunch:
    """The starts of a launch with `behind` arguments behind another one with `arguments`, without
    a margin.

    The other launch is on one PE, and so large that the commands behind it wait for its bytes: they
    arrive after their stamp, one behind the other in the order in which a CPU sends them.
    """

    def __init__(self, file: TopologyFile, arguments: int, behind: int = 1) -> None:
        self._first, self._second = LaunchRoutes(file, arguments), LaunchRoutes(file, behind)

    def on_cubes(self, cubes: Sequence[int], pes: Sequence[int]) -> list[int]:
        """The start on the last of `pes` in each cube, from the submission of both on an ideal
        host.

        The IO_CPU sends the other command to another cube, then one packet with the commands of
        all `pes` to each of `cubes`.
        """
        first, second = self._first, self._second
        nbytes, before = len(pes) * second.nbytes, len(pes) - 1
        sent_ps = first.to_io_ps + first.on_link_ps(IO_NOC_GBS)
        starts_ps: list[int] = []
        for cube in cubes:
            # A packet pays its bytes at the narrowest link of its route, behind the first link.
            arrives_ps = sent_ps + _packet_ps(second, second.down(cube), nbytes)
            others_ps = before * second.on_link_ps(M_CPU_GBS)
            last_ps = _packet_ps(second, second.spread(pes[-1]), second.nbytes)
            starts_ps.append(arrives_ps + others_ps + last_ps)
            sent_ps += second.on_link_ps(IO_NOC_GBS, len(pes))
        return starts_ps

    def on_pes(self, cube: int, pes: Sequence[int]) -> list[int]:
        """The start on each of `pes` of a cube, from the submission of both on an ideal host.

        The M_CPU sends the other command to another PE of the cube, then one to each of `pes`.
        """
        first, second = self._first, self._second
        down_ps = _packet_ps(first, first.down(cube), first.nbytes)
        sent_ps = first.to_io_ps + down_ps + first.on_link_ps(M_CPU_GBS)
        starts_ps: list[int] = []
        for pe in pes:
            starts_ps.append(sent_ps + _packet_ps(second, second.spread(pe), second.nbytes))
            sent_ps += second.on_link_ps(M_CPU_GBS)
        return starts_ps


def submission_ps(file: TopologyFile, *, copies: bool) -> int:
    """The time of the host for a command; a copy has a time of its own only where that is given."""
    launch, copy = "host.launch_overhead_ns", "host.copy_overhead_ns"
    return file.ps(copy if copies and file.get(copy, None) is not None else launch, 0)


def _packet_ps(routes: LaunchRoutes, route: Route, nbytes: int) -> int:
    return routes.times.latency_ps(route) + transfer_ps(nbytes, routes.times.narrowest_gbs(route))


class BarrierTimes(LaunchRoutes):
    """The times of barriers of launches on `pes`, which are sorted.

    The last PE comes behind all others; its call passes the M_CPU of its cube and that of the first
    cube. An M_CPU sends its signals one behind the other on its link: first those to the M_CPUs of
    the other cubes, then those to its own PEs.
    """

    def __init__(self, file: TopologyFile, pes: Sequence[PeOfSip]) -> None:
        super().__init__(file)
        self._cubes = dict[int, list[int]]()
        for cube, pe in pes:
            self._cubes.setdefault(cube, []).append(pe)
        self._first = min(self._cubes)
        self._signal_ps = transfer_ps(file["control_bytes"], file.number(M_CPU_GBS))

    def releases_ps(self, last: PeOfSip) -> dict[PeOfSip, int]:
        """Time from the call of the last PE to the end of the barrier on each PE."""
        control_ps = self.times.control_ps
        complete_ps = self.times.commands.issue_ps + control_ps(self.collect(last[1]))
        if last[0] != self._first:
            complete_ps += control_ps(self.between_m_cpus(last[0], self._first))
        releases_ps: dict[PeOfSip, int] = {}
        sent_ps = complete_ps
        for cube in [each for each in self._cubes if each != self._first]:
            releases_ps |= self._cube_ps(
                cube, sent_ps + control_ps(self.between_m_cpus(self._first, cube))
            )
            sent_ps += self._signal_ps
        return releases_ps | self._cube_ps(self._first, sent_ps)

    def _cube_ps(self, cube: int, begin_ps: int) -> dict[PeOfSip, int]:
        """The releases of the PEs of a cube, whose M_CPU sends the first one at `begin_ps`."""
        return {
            (cube, pe): begin_ps + place * self._signal_ps + self.times.control_ps(self.spread(pe))
            for place, pe in enumerate(self._cubes[cube])
        }
