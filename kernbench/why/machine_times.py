"""Closed forms of the work on a path for one machine: a fixed time, and a time for bytes.

The forms are those of `kernbench.theory` on the routes of the simulator's own graph. The time of a
piece is `fixed + bytes` where nothing competes; a piece that took longer waited for other transfers
in the same servers, and its rest changes with the time for bytes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from kernbench.probe.routes import RouteEnd, TimedRoutes
from kernbench.theory.bandwidths import peak_macs_per_cycle, slice_gbs
from kernbench.theory.launches import LaunchTimes
from kernbench.theory.roofline import cycles_ps
from kernbench.theory.servers import PacketWindow, Serialiser
from kernbench.theory.topology_file import TopologyFile
from kernbench.theory.transfers import Leg, TimedHop
from kernbench.theory.vector_engine import VectorEngine
from kernbench.why.work import (
    ConfigureWork,
    HostCopyWork,
    LaunchReportWork,
    LaunchWork,
    LocalWork,
    OverheadsWork,
    PeWork,
    ProductStepWork,
    QueueWork,
    RoutePlace,
    TransferWork,
    VectorsWork,
    Work,
)
from runtime.core.coordinates import PeCoordinates
from runtime.core.simtime import PS_PER_NS
from runtime.language.functions import REDUCTIONS, SCANS
from runtime.language.passes import passes
from runtime.model.graph import ChipGraph
from runtime.model.topology import Topology

_LANE_BYTES = 4
_MATH_CLOCK = "pe.math.clock_ghz"
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
        self.topology = topology
        self._file = TopologyFile(topology.values())
        self._vector_engine = VectorEngine(self._file)
        self._routes = TimedRoutes(topology)
        self.link_names: tuple[str, ...] = self._routes.graph.link_names
        self._links = {
            name: link.bw_gbs
            for name, link in zip(
                self._routes.graph.link_names, self._routes.graph.links, strict=True
            )
        }
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
            case HostCopyWork():
                return self._host_copy(work)
            case QueueWork():
                return WorkTime(0, self._queue(work.link), is_rate=True)
            case LaunchWork() | LaunchReportWork() | ConfigureWork():
                return WorkTime(self._launching_ps(work), Fraction(0))
            case _:
                return self._in_pe(work)

    def _in_pe(self, work: PeWork) -> WorkTime:
        match work:
            case LocalWork():
                return WorkTime(self._fixed(work.overheads), self._bytes(work.nbytes, work.gbs))
            case VectorsWork():
                return self._vectors(work.function)
            case OverheadsWork():
                return WorkTime(self._fixed(work.keys), Fraction(0))
            case ProductStepWork():
                rate = self._file.number("pe.gemm.clock_ghz") * peak_macs_per_cycle(self._file)
                return WorkTime(0, PS_PER_NS / rate, is_rate=True)

    def _launching_ps(self, work: LaunchWork | LaunchReportWork | ConfigureWork) -> int:
        match work:
            case LaunchWork():
                return LaunchTimes(self._file, work.pes).stamp_ps
            case LaunchReportWork():
                times = LaunchTimes(self._file, [work.pe])
                return times.report_of_ps(work.pe) + (times.answer_ps if work.to_host else 0)
            case ConfigureWork():
                return self._configure_ps(work)

    def _transfer(self, work: TransferWork) -> WorkTime:
        there = self._hops(work.source, work.target)
        fixed_ps = self._fixed(work.overheads) + _latency_ps(there)
        source, target = self._server(work.source), self._server(work.target)
        window = None
        if work.requested:
            fixed_ps += self._control_ps(work.target, work.source)
            if work.source.kind == "hbm":
                fixed_ps += self._routes.hbm_read(_coordinates(work.source)).overhead_ps
            window = PacketWindow(self.topology.pe.dma.outstanding, fixed_ps)
        if work.answered:
            fixed_ps += self._control_ps(work.target, work.source)
        leg = Leg(
            name="data",
            hops=there,
            nbytes=max(work.nbytes, 1),
            packet_bytes=self.topology.packet_bytes,
            source=source,
            sink=target,
            window=window,
        )
        return WorkTime(fixed_ps, Fraction(leg.drain_ps))

    def _host_copy(self, work: HostCopyWork) -> WorkTime:
        host, io_cpu = RoutePlace("host", work.memory.sip), RoutePlace("io_cpu", work.memory.sip)
        answered = host if work.to_host else io_cpu
        fixed_ps = _latency_ps(self._hops(io_cpu, work.memory))
        fixed_ps += _latency_ps(self._hops(work.memory, answered))
        route = self._hops(io_cpu if work.is_held else host, work.memory)
        if work.is_read:
            route = self._hops(work.memory, host)
            if work.memory.kind == "hbm":
                fixed_ps += self._routes.hbm_read(_coordinates(work.memory)).overhead_ps
        # The bytes of all memories pass the same links near the host one after the other.
        drain_ps = self._drain(route, work.nbytes)
        if not work.is_held or work.is_read:
            return WorkTime(fixed_ps, drain_ps)
        return WorkTime(fixed_ps, drain_ps, self._drain(self._hops(host, io_cpu), work.nbytes))

    def _drain(self, route: tuple[TimedHop, ...], nbytes: int) -> Fraction:
        return Fraction(Leg("data", route, max(nbytes, 1), self.topology.packet_bytes).drain_ps)

    def _configure_ps(self, work: ConfigureWork) -> int:
        io_cpu = RoutePlace("io_cpu", work.sip)
        m_cpus = [RoutePlace("m_cpu", work.sip, cube) for cube in range(self.topology.cubes)]
        farthest_ps = max(
            _latency_ps((*self._hops(io_cpu, m_cpu), *self._hops(m_cpu, io_cpu)))
            for m_cpu in m_cpus
        )
        answer = self._hops(io_cpu, RoutePlace("host", work.sip)) if work.to_host else ()
        return farthest_ps + _latency_ps(answer)

    def _hops(self, source: RoutePlace, target: RoutePlace) -> tuple[TimedHop, ...]:
        return self._routes.hops(self._end(source), self._end(target))

    def _control_ps(self, source: RoutePlace, target: RoutePlace) -> int:
        """A control packet: a request or an acknowledgement."""
        hops, size = self._hops(source, target), self.topology.control_bytes
        return _latency_ps(hops) + Leg("request", hops, size, size).drain_ps

    def _end(self, place: RoutePlace) -> RouteEnd:
        return place.sip, node_of(self._routes.graph, place)

    def _server(self, place: RoutePlace) -> Serialiser | None:
        """The memory at an end of a transfer, where it limits the bandwidth."""
        if place.kind == "hbm":
            return self._routes.hbm(_coordinates(place))
        return self._routes.tcm(_coordinates(place)) if place.kind == "pe" else None

    def _vectors(self, function: str) -> WorkTime:
        """A vector at the slowest of fetch port, engine and store port, for each of its lanes.

        In each pass: a reduction combines the lanes behind the last vector, a scan in every one.
        The records have no shapes, so that the sums of a softmax count as one vector of rows.
        """
        lanes, cycles = self._vector_engine.lanes, self._file["pe.math.cycles"]
        operands = 1 if function in _UNARY else 2
        ports_ps = self._bytes(operands * lanes * _LANE_BYTES, "pe.fetch_store.bw_gbs")
        fixed_ps, vector_ps = Fraction(0), Fraction(0)
        for each in passes(function):
            tree = self._vector_engine.tree_cycles()
            of_vector = sum(cycles.get(name, 1) for name in each.functions) + tree * each.scans
            behind = (tree + sum(cycles.get(name, 1) for name in each.after)) * each.reduces
            fixed_ps += self._vector_engine.computed_ps(0, 0, behind)
            vector_ps += max(cycles_ps(of_vector, self._file.number(_MATH_CLOCK)), ports_ps)
        return WorkTime(round(fixed_ps), vector_ps / lanes, is_rate=True)

    def _queue(self, link: str) -> Fraction:
        """The time of a byte at a link or a memory."""
        gbs = self._links.get(link)
        if link and gbs is None:
            # Ports to other SIPs are links of no chip.
            gbs = self.topology.ucie.bw_gbs
        return PS_PER_NS / (Fraction(str(gbs)) if link else slice_gbs(self._file))

    def _bytes(self, nbytes: int, key: str) -> Fraction:
        return nbytes * PS_PER_NS / self._file.number(key)

    def _fixed(self, keys: Iterable[str]) -> int:
        return sum(self._file.ps(key) for key in keys if self._file[key] is not None)


def node_of(graph: ChipGraph, place: RoutePlace) -> int:
    """The node of its SIP at which a route begins or ends."""
    match place.kind:
        case "host":
            return graph.host
        case "io_cpu":
            return graph.io_cpu
        case "m_cpu":
            return graph.m_cpu(place.cube)
        case "hbm":
            return graph.hbm(place.cube, place.pe)
        case "sram":
            return graph.sram(place.cube)
        case _:
            return graph.pe(place.cube, place.pe)


def _latency_ps(hops: Iterable[TimedHop]) -> int:
    return sum(hop.overhead_ps + hop.wire_ps for hop in hops)


def _coordinates(place: RoutePlace) -> PeCoordinates:
    return PeCoordinates(place.sip, place.cube, place.pe)
