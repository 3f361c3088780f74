"""Closed forms of the work on a path for one machine: a fixed time, and a time for bytes.

The forms and the routes are those of `kernbench.oracle.theory`. The time of a piece is `fixed +
bytes` where nothing competes; a piece that took longer waited for other transfers in the same
servers, and its rest changes with the time for bytes.
"""

from dataclasses import dataclass
from fractions import Fraction

from kernbench.explain.why.work import (
    ConfigureWork,
    HostCopyWork,
    HostWork,
    IssueWork,
    JitterWork,
    LaunchReportWork,
    LaunchWork,
    LocalWork,
    OperandWork,
    PeWork,
    ProductStepWork,
    QueueWork,
    SubmissionWork,
    TransferWork,
    VectorsWork,
    Work,
)
from kernbench.oracle.theory.bandwidths import gemm_bound_ps, slice_gbs
from kernbench.oracle.theory.commands import FixedTimes
from kernbench.oracle.theory.engines.vector_engine import VectorEngine
from kernbench.oracle.theory.kernels.launches import LaunchTimes, submission_ps
from kernbench.oracle.theory.paths.least_latencies import with_least_latencies
from kernbench.oracle.theory.paths.memory_access import MemoryAccess
from kernbench.oracle.theory.paths.routes import FETCH_GBS, TCM_GBS, Route, RouteEnd, link_gbs
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.language.chains.passes import passes
from runtime.language.functions import REDUCTIONS, SCANS
from runtime.model.topology import Topology

_UNARY = (
    *("exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "silu", "gelu", "cast", "abs"),
    *(*REDUCTIONS, *SCANS, "softmax"),
)


@dataclass(frozen=True)
class WorkTime:
    """The fixed time of a piece of work, and that for its bytes, elements or steps.

    `arriving_ps` is the time in which its data comes from the host behind that of another copy,
    while this one waits for the end of the other. With `is_rate`, `bytes_ps` is that of one
    element, of as many as the piece is long.
    """

    fixed_ps: int
    bytes_ps: Fraction
    arriving_ps: Fraction = Fraction(0)
    is_rate: bool = False

    def change_ps(self, other: "WorkTime", length_ps: int, *, is_absorbed: bool = False) -> int:
        """The change of a piece of `length_ps` on a machine where its work takes `other`.

        With `is_absorbed`, what it waited for others absorbs a change of its fixed time: they are
        served when they were.
        """
        alone_ps = self.fixed_ps + self.bytes_ps
        if not alone_ps:
            return 0
        if self.arriving_ps and length_ps > alone_ps:
            # It waited for its data, whose latency the copy before has hidden.
            arriving_ps = length_ps * other.arriving_ps / self.arriving_ps
            return round(max(arriving_ps, other.fixed_ps + other.bytes_ps)) - length_ps
        if length_ps < alone_ps:
            # A part of the work: the rest of it was hidden.
            return round(length_ps * (other.fixed_ps + other.bytes_ps) / alone_ps) - length_ps
        # What is beyond the fixed time was spent at servers that move bytes: it scales with their
        # rate.
        ratio = other.bytes_ps / self.bytes_ps if self.bytes_ps else Fraction(1)
        change_ps = Fraction(other.fixed_ps - self.fixed_ps)
        if is_absorbed and not self.is_rate:
            waited_ps = (length_ps - alone_ps) * ratio
            change_ps -= max(min(change_ps, waited_ps), -waited_ps)
        changed_ps = self.fixed_ps + change_ps + (length_ps - self.fixed_ps) * ratio
        return round(changed_ps) - length_ps


class MachineTimes:
    """The times of work on one machine."""

    def __init__(self, topology: Topology) -> None:
        self._file, self._cubes = TopologyFile(topology.values()), topology.cubes
        self._vector_engine = VectorEngine(self._file)
        self._access = MemoryAccess(with_least_latencies(self._file))
        self._times, self._commands = self._access.times, self._access.commands
        self._known = dict[Work, WorkTime]()

    def of(self, work: Work) -> WorkTime:
        """The time of a piece of work."""
        if work not in self._known:
            self._known[work] = self._compute(work)
        return self._known[work]

    def _compute(self, work: Work) -> WorkTime:
        match work:
            case TransferWork():
                return self._transfer(work)
            case OperandWork():
                return WorkTime(0, self.of(work.transfer).bytes_ps, is_rate=True)
            case HostCopyWork():
                return self._host_copy(work)
            case QueueWork() | JitterWork():
                of_unit_ps = self._queue(work) if isinstance(work, QueueWork) else self._late(work)
                return WorkTime(0, of_unit_ps, is_rate=True)
            case SubmissionWork() | LaunchWork() | LaunchReportWork() | ConfigureWork():
                return WorkTime(self._host_ps(work), Fraction(0))
            case _:
                return self._in_pe(work)

    def _in_pe(self, work: PeWork) -> WorkTime:
        own = self._times.parts.file_of((work.pe.sip, work.pe.name)) if work.pe else self._file
        commands = self._commands if own is self._file else FixedTimes(own)
        match work:
            case LocalWork():
                starts_ps = {"sent": commands.write_start_ps, "copied": commands.read_start_ps}
                gbs = FETCH_GBS if work.kind == "fetched" else TCM_GBS
                moved_ps = bytes_ps(work.nbytes, own.number(gbs))
                return WorkTime(starts_ps.get(work.kind, 0), moved_ps)
            case VectorsWork():
                return self._vectors(own, work.function)
            case IssueWork():
                issue_ps = commands.translated_ps if work.translated else commands.issue_ps
                return WorkTime(issue_ps, Fraction(0))
            case ProductStepWork():
                return WorkTime(0, gemm_bound_ps(own, 1), is_rate=True)

    def _host_ps(self, work: HostWork) -> int:
        match work:
            case SubmissionWork():
                return submission_ps(self._file, copies=work.copies)
            case LaunchWork():
                return LaunchTimes(self._file, work.pes).stamp_ps
            case LaunchReportWork():
                times = LaunchTimes(self._file, [work.pe])
                return times.report_of_ps(work.pe) + (times.answer_ps if work.to_host else 0)
            case ConfigureWork():
                return self._configure_ps(work)

    def _transfer(self, work: TransferWork) -> WorkTime:
        access, commands, nbytes = self._access, self._commands, max(work.nbytes, 1)
        if work.kind in ("read", "write"):
            reads = work.kind == "read"
            form = (
                access.read(work.target, work.source, nbytes)
                if reads
                else access.write(work.source, work.target, nbytes)
            )
            return WorkTime(form.latency_ps, Fraction(form.data.drain_ps))
        queued_ps = {
            "slot": commands.write_start_ps + commands.ipcq_ps,
            "credit": commands.ipcq_ps,
        }.get(work.kind, 0)
        data = access.message(work.source, work.target, nbytes)
        return WorkTime(queued_ps + data.latency_ps, Fraction(data.drain_ps))

    def _host_copy(self, work: HostCopyWork) -> WorkTime:
        host, io_cpu = RouteEnd("host", work.memory.sip), RouteEnd("io_cpu", work.memory.sip)
        fixed_ps = self._latency_ps(io_cpu, work.memory)
        fixed_ps += self._latency_ps(work.memory, host if work.to_host else io_cpu)
        route = self.route(io_cpu if work.is_held else host, work.memory)
        if work.is_read:
            route = self.route(work.memory, host)
            if work.memory.kind == "hbm":
                fixed_ps += self._times.first_byte().latency_ps
        # The bytes of all memories pass the same links near the host one after the other.
        drain_ps = self._drain(route, work.nbytes)
        if not work.is_held or work.is_read:
            return WorkTime(fixed_ps, drain_ps)
        return WorkTime(fixed_ps, drain_ps, self._drain(self.route(host, io_cpu), work.nbytes))

    def _configure_ps(self, work: ConfigureWork) -> int:
        io_cpu = RouteEnd("io_cpu", work.sip)
        is_down = self._times.parts.is_down
        cubes = [each for each in range(self._cubes) if not is_down(work.sip, f"cube{each}")]
        m_cpus = [RouteEnd("m_cpu", work.sip, cube) for cube in cubes]
        farthest_ps = max(
            self._latency_ps(io_cpu, m_cpu) + self._latency_ps(m_cpu, io_cpu) for m_cpu in m_cpus
        )
        if not work.to_host:
            return farthest_ps
        return farthest_ps + self._latency_ps(io_cpu, RouteEnd("host", work.sip))

    def _vectors(self, own: TopologyFile, function: str) -> WorkTime:
        """A vector at the slowest of fetch port, engine and store port, for each of its lanes.

        In each pass: a reduction combines the lanes behind the last vector, a scan in every one.
        The records have no shapes, so that the sums of a softmax count as one vector of rows.
        """
        engine = self._vector_engine if own is self._file else VectorEngine(own)
        cycles = own["pe.math.cycles"]
        operands = 1 if function in _UNARY else 2
        fixed_ps, vector_ps = Fraction(0), Fraction(0)
        for each in passes(function):
            tree = engine.tree_cycles()
            of_vector = sum(cycles.get(name, 1) for name in each.functions) + tree * each.scans
            behind = (tree + sum(cycles.get(name, 1) for name in each.after)) * each.reduces
            fixed_ps += engine.computed_ps(0, 0, behind)
            vector_ps += engine.vector_ps(of_vector, operands)
        return WorkTime(round(fixed_ps), vector_ps / engine.lanes, is_rate=True)

    def _queue(self, work: QueueWork) -> Fraction:
        """The time of a byte at a link or a memory."""
        if not work.link:
            return bytes_ps(1, slice_gbs(self._file))
        key = link_gbs(work.link)
        return bytes_ps(1, self._times.parts.named_link_gbs(key, work.sip, work.link))

    def _late(self, work: JitterWork) -> Fraction:
        """The bound of a delay: with one seed, a delay is the same share of any bound."""
        own = self._times.parts.file_of((work.sip, work.component))
        return Fraction(own.ps(work.key))

    def route(self, source: RouteEnd, target: RouteEnd) -> Route:
        """The hops between two components, also of two SIPs."""
        return self._access.plan.route(source, target)

    def _latency_ps(self, source: RouteEnd, target: RouteEnd) -> int:
        return self._times.latency_ps(self.route(source, target))

    def _drain(self, route: Route, nbytes: int) -> Fraction:
        return Fraction(self._times.data(self._times.hops(route), max(nbytes, 1)).drain_ps)
