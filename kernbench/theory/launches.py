"""Closed forms of kernel launches from the host, on one PE of SIP 0, in picoseconds.

    host --launch--> IO_CPU --> M_CPU --> PE ==kernel== PE --> M_CPU --report--> IO_CPU --> host
          to_io_ps   |<--------------------- period_ps ----------------------->|   answer_ps

The IO_CPU starts the next launch of a stream when it has the report of the launch before, so N
launches take to_io + N x period + answer; the way from the host of all but the first is hidden. A
host that needs longer for a command than a period is the bottleneck: N x overhead instead.
"""

from kernbench.theory.floor_plan import FloorPlan, Stem, pe_stem
from kernbench.theory.routes import (
    HOST_TO_IO,
    IO_TO_HOST,
    M_CPU_GBS,
    MESH_GBS,
    PE_GBS,
    ROUTER_NS,
    UCIE_GBS,
    KeyedHop,
    Route,
)
from kernbench.theory.servers import transfer_ps
from kernbench.theory.topology_file import TopologyFile
from kernbench.theory.transfers import RouteTimes

HEADER_BYTES, ARGUMENT_BYTES = 64, 8
IO_NOC_GBS = "sip.io_chiplet.noc.bw_gbs"


class LaunchTimes:
    """The times of launches with `arguments` arguments on PE `pe` of cube `cube`."""

    def __init__(self, file: TopologyFile, cube: int, pe: int, arguments: int = 0) -> None:
        self.file, self.times = file, RouteTimes(file)
        plan = FloorPlan(file)
        self.nbytes = max(HEADER_BYTES + ARGUMENT_BYTES * arguments, file["control_bytes"])
        m_cpu, router = plan.cube.m_cpu(), plan.cube.pe(pe)
        m_cpu_out, m_cpu_in = _m_cpu_stem(m_cpu)
        pe_out, pe_in = pe_stem(router)
        self._down: Route = HOST_TO_IO[2:] + plan.into(cube, m_cpu[0]) + m_cpu_in
        self._up: Route = m_cpu_out + plan.out(cube, m_cpu[0]) + IO_TO_HOST[:1]
        self._spread: Route = m_cpu_out + plan.cube.mesh(m_cpu[0], router[0]) + pe_in
        self._collect: Route = pe_out + plan.cube.mesh(router[0], m_cpu[0]) + m_cpu_in

    @property
    def to_io_ps(self) -> int:
        """From the host until the IO_CPU has the whole launch."""
        to_io = HOST_TO_IO[:2]
        return self.times.latency_ps(to_io) + self._drain_ps(to_io)

    @property
    def launch_link_ps(self) -> int:
        """The time that a launch occupies the narrowest link between host and IO_CPU."""
        return self._drain_ps(HOST_TO_IO[:2])

    @property
    def stamp_ps(self) -> int:
        """From the stamp of the IO_CPU to the start of the kernel: margin and longest route.

        The longest route has the bytes of the command at the narrowest link on the way to an M_CPU,
        and again on the way from there to a PE: bandwidths of all links that such routes can have.
        """
        number = self.file.number
        down = map(number, (IO_NOC_GBS, UCIE_GBS, MESH_GBS, M_CPU_GBS))
        spread = map(number, (M_CPU_GBS, MESH_GBS, PE_GBS))
        return (
            self.file.ps("sip.io_chiplet.io_cpu.launch_margin_ns")
            + self.times.latency_ps(self._down)
            + transfer_ps(self.nbytes, min(down))
            + self.times.latency_ps(self._spread)
            + transfer_ps(self.nbytes, min(spread))
        )

    @property
    def report_ps(self) -> int:
        """From the end of the kernel until the IO_CPU has the report of the M_CPU."""
        return self.times.control_ps(self._collect) + self.times.control_ps(self._up)

    def period_ps(self, kernel_ps: int) -> int:
        """From one launch of a stream to the next."""
        return self.stamp_ps + kernel_ps + self.report_ps

    @property
    def answer_ps(self) -> int:
        """From the IO_CPU until the host has the answer."""
        return self.times.control_ps(IO_TO_HOST[1:])

    def stream_ps(self, launches: int, kernel_ps: int) -> int:
        """N launches on one stream, from the first submission to the last answer."""
        return self.to_io_ps + launches * self.period_ps(kernel_ps) + self.answer_ps

    def host_bound_ps(self, launches: int, kernel_ps: int, overhead_ps: int) -> int:
        """N launches of a host that needs `overhead_ps`, at least a period, for each of them."""
        return launches * overhead_ps + self.stream_ps(1, kernel_ps)

    def _drain_ps(self, route: Route) -> int:
        return transfer_ps(self.nbytes, self.times.narrowest_gbs(route))


def _m_cpu_stem(stem: Stem) -> tuple[Route, Route]:
    """From an M_CPU to its router, and from the router to the M_CPU."""
    into = KeyedHop(stem[1], "cube.m_cpu.overhead_ns", M_CPU_GBS)
    return (KeyedHop(stem[1], ROUTER_NS, M_CPU_GBS),), (into,)
