"""The links that the data of a piece of the critical path passes, for the map of the page."""

from dataclasses import replace
from itertools import pairwise

from kernbench.explain.records import RecordedRun
from kernbench.explain.why.piece import PathPiece
from kernbench.explain.why.work import (
    HostCopyWork,
    LaunchReportWork,
    LaunchWork,
    PathWork,
    TransferWork,
    Work,
)
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.routes import RouteEnd
from kernbench.oracle.theory.topology_file import TopologyFile

SipLinks = tuple[int, tuple[str, ...]]
"""A SIP and the links of a route in it; those between SIPs, `SIP 0 -> SIP 1`, with the sender."""
NO_ROUTE = -1


class PathRoutes:
    """The routes of pieces, each different one once: `routes[of(piece)]`."""

    def __init__(self, records: RecordedRun) -> None:
        self.routes: list[tuple[SipLinks, ...]] = []
        self._work = PathWork(records)
        self._plan = FloorPlan(TopologyFile(records.topology.values()))
        self._numbers: dict[tuple[RouteEnd, RouteEnd], int] = {}

    def of(self, piece: PathPiece) -> int:
        """The number of the route of a piece, `NO_ROUTE` for one that stays at its place."""
        ends = _ends(self._work.of(piece), piece)
        if ends is None or ends[0] == ends[1]:
            return NO_ROUTE
        if ends not in self._numbers:
            self._numbers[ends] = len(self.routes)
            self.routes.append(tuple(self._links(*ends)))
        return self._numbers[ends]

    def _links(self, source: RouteEnd, target: RouteEnd) -> list[SipLinks]:
        if source.sip == target.sip:
            return [(source.sip, self._inside(source, target))]
        noc = RouteEnd("io_noc")
        links = [(source.sip, self._inside(source, noc))]
        for sip, neighbour in pairwise(self._plan.sip_path(source.sip, target.sip)):
            stops = ("switch",) if self._plan.is_switched else ()
            passed = pairwise((f"SIP {sip}", *stops, f"SIP {neighbour}"))
            links.append((sip, tuple(f"{near} -> {far}" for near, far in passed)))
        return [*links, (target.sip, self._inside(noc, target))]

    def _inside(self, source: RouteEnd, target: RouteEnd) -> tuple[str, ...]:
        """The links of a route in a SIP, whose names are those of SIP 0."""
        route = self._plan.route(replace(source, sip=0), replace(target, sip=0))
        nodes = (source.name, *(hop.node for hop in route))
        return tuple(f"{near}->{far}" for near, far in pairwise(nodes))


def _ends(work: Work | None, piece: PathPiece) -> tuple[RouteEnd, RouteEnd] | None:
    host, io_cpu = RouteEnd("host", piece.sip), RouteEnd("io_cpu", piece.sip)
    match work:
        case TransferWork():
            return work.source, work.target
        case HostCopyWork():
            return (work.memory, host) if work.is_read else (host, work.memory)
        case LaunchWork():
            return io_cpu, RouteEnd("pe", piece.sip, piece.cube, piece.pe)
        case LaunchReportWork():
            cube, pe = work.pe
            return RouteEnd("pe", piece.sip, cube, pe), host if work.to_host else io_cpu
        case _:
            return None
