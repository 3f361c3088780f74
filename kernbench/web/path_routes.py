"""The links that the data of a piece of the critical path passes, for the map of the page."""

from itertools import pairwise

from kernbench.probe.routes import TimedRoutes
from kernbench.run_records import RecordedRun
from kernbench.why.machine_times import node_of
from kernbench.why.piece import PathPiece
from kernbench.why.work import (
    HostCopyWork,
    LaunchReportWork,
    LaunchWork,
    PathWork,
    RoutePlace,
    TransferWork,
    Work,
)

SipLinks = tuple[int, tuple[str, ...]]
"""A SIP and the links of a route in it; those between SIPs, `SIP 0 -> SIP 1`, with the sender."""
NO_ROUTE = -1


class PathRoutes:
    """The routes of pieces, each different one once: `routes[of(piece)]`."""

    def __init__(self, records: RecordedRun) -> None:
        self.routes: list[tuple[SipLinks, ...]] = []
        self._work, self._timed = PathWork(records), TimedRoutes(records.topology)
        self._switched = records.topology.system.sips.fabric == "switch"
        self._numbers: dict[tuple[RoutePlace, RoutePlace], int] = {}

    def of(self, piece: PathPiece) -> int:
        """The number of the route of a piece, `NO_ROUTE` for one that stays at its place."""
        ends = _ends(self._work.of(piece), piece)
        if ends is None or ends[0] == ends[1]:
            return NO_ROUTE
        if ends not in self._numbers:
            self._numbers[ends] = len(self.routes)
            self.routes.append(tuple(self._links(*ends)))
        return self._numbers[ends]

    def _links(self, source: RoutePlace, target: RoutePlace) -> list[SipLinks]:
        graph = self._timed.graph
        begin, end = node_of(graph, source), node_of(graph, target)
        if source.sip == target.sip:
            return [(source.sip, self._inside(begin, end))]
        found = [(source.sip, self._inside(begin, graph.io_noc))]
        for sip, neighbour in pairwise(self._timed.sips.path(source.sip, target.sip)):
            stops = ("switch",) if self._switched else ()
            passed = pairwise((f"SIP {sip}", *stops, f"SIP {neighbour}"))
            found.append((sip, tuple(f"{near} -> {far}" for near, far in passed)))
        return [*found, (target.sip, self._inside(graph.io_noc, end))]

    def _inside(self, begin: int, end: int) -> tuple[str, ...]:
        graph = self._timed.graph
        nodes = self._timed.routes.route(begin, end).nodes
        return tuple(graph.link_names[graph.link(*each).index] for each in pairwise(nodes))


def _ends(work: Work | None, piece: PathPiece) -> tuple[RoutePlace, RoutePlace] | None:
    host, io_cpu = RoutePlace("host", piece.sip), RoutePlace("io_cpu", piece.sip)
    match work:
        case TransferWork():
            return work.source, work.target
        case HostCopyWork():
            return (work.memory, host) if work.is_read else (host, work.memory)
        case LaunchWork():
            return io_cpu, RoutePlace("pe", piece.sip, piece.cube, piece.pe)
        case LaunchReportWork():
            cube, pe = work.pe
            return RoutePlace("pe", piece.sip, cube, pe), host if work.to_host else io_cpu
        case _:
            return None
