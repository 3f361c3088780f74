"""The transfers of `probe`: from the host or from PE 0 of cube 0 of SIP 0 to various memories."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from kernbench.probe.routes import RouteEnd, TimedRoutes
from kernbench.theory.servers import PacketWindow, Serialiser
from kernbench.theory.transfers import Leg, TimedHop, TransferForm
from runtime.core.coordinates import PeCoordinates
from runtime.core.requests import MemoryReadMsg, MemoryWriteMsg, PeDmaMsg, Request
from runtime.model.addresses import AddressMap
from runtime.model.schema import Topology

Direction = Literal["write", "read"]
MemoryKind = Literal["HBM", "TCM", "SRAM"]
SUFFIXES: Mapping[MemoryKind, str] = {"HBM": "", "TCM": "-tcm", "SRAM": "-sram"}
"""End of the name of a case, by the memory that it accesses."""
PE_MEMORIES: tuple[MemoryKind, ...] = ("HBM", "TCM")
BOTH: tuple[Direction, ...] = ("write", "read")
ORIGIN = PeCoordinates(0, 0, 0)
"""The PE whose DMA is probed."""

NAMES: Mapping[str, str] = {
    "h2d-write": "host",
    "h2d-write-tcm": "host",
    "h2d-write-sram": "host",
    "d2h-read": "host",
    "d2h-read-tcm": "host",
    "d2h-read-sram": "host",
    "dma-own": "own cube",
    "dma-near": "own cube",
    "dma-far": "own cube",
    "dma-near-tcm": "own cube",
    "dma-far-tcm": "own cube",
    "dma-sram": "own cube",
    "dma-cube-best": "other cube",
    "dma-cube-worst": "other cube",
    "dma-sip-1": "other SIP",
    "dma-sip-2": "other SIP",
}
"""Every case, and the group in which it is shown."""


@dataclass(frozen=True)
class ProbeCase:
    """A transfer to or from a memory at `target`, by the host or by the DMA of `ORIGIN`."""

    name: str
    kind: MemoryKind
    target: PeCoordinates
    directions: tuple[Direction, ...]

    @property
    def by_host(self) -> bool:
        """Whether the host issues the transfer; otherwise the DMA of `ORIGIN` does."""
        return NAMES[self.name] == "host"

    @property
    def memory(self) -> str:
        """The memory in short: `sip1.cube0.pe0 HBM`."""
        sip = f"sip{self.target.sip}." if self.target.sip else ""
        pe = "" if self.kind == "SRAM" else f".pe{self.target.pe}"
        return f"{sip}cube{self.target.cube}{pe} {self.kind}"


class ProbeCases:
    """The cases of a topology, in the order of `NAMES`; `left_out` has the reasons for others."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.routes = TimedRoutes(topology)
        self._addresses = AddressMap(topology)
        found: dict[str, tuple[MemoryKind, PeCoordinates]] = {}
        self.left_out: dict[str, str] = {}
        for kind, suffix in SUFFIXES.items():
            found |= {f"h2d-write{suffix}": (kind, ORIGIN), f"d2h-read{suffix}": (kind, ORIGIN)}
        found |= {"dma-own": ("HBM", ORIGIN), "dma-sram": ("SRAM", ORIGIN)}
        self._in_own_cube(found)
        self._in_other_cubes(found)
        self._in_other_sips(found)
        self.cases = tuple(
            ProbeCase(name, *found[name], _directions(name)) for name in NAMES if name in found
        )

    def request(self, case: ProbeCase, direction: Direction, nbytes: int) -> Request:
        """The request of a transfer; it starts at the first byte of the memory."""
        address = self._address(case)
        if not case.by_host:
            return PeDmaMsg(ORIGIN.cube, ORIGIN.pe, direction, address, nbytes)
        if direction == "write":
            return MemoryWriteMsg(address, nbytes, b"")
        return MemoryReadMsg(address, nbytes)

    def capacity_bytes(self, case: ProbeCase) -> int:
        """The largest transfer: the size of the memory, and for a DMA also that of its own TCM."""
        topology = self.topology
        # A DMA moves data between the memory and the TCM of its own PE, so both must hold them.
        capacity = {
            "HBM": topology.hbm_slice_bytes,
            "TCM": topology.tcm_bytes,
            "SRAM": topology.sram_bytes,
        }[case.kind]
        return capacity if case.by_host else min(capacity, topology.tcm_bytes)

    def closed_form(self, case: ProbeCase, direction: Direction, nbytes: int) -> TransferForm:
        """Legs of a write: data, acknowledgement. Legs of a read: request, data."""
        packet_bytes, control_bytes = self.topology.packet_bytes, self.topology.control_bytes
        here, own, start = self._origin(case)
        there, memory = self._memory(case)
        out = (*start, *self.routes.hops(here, there))
        back = self.routes.hops(there, here)
        first = (self.routes.hbm_read(case.target),) if case.kind == "HBM" else ()
        # The control packet of the other leg ends at an interface, not in a memory.
        if direction == "write":
            data = Leg("data", out, nbytes, packet_bytes, source=own, sink=memory)
            return TransferForm((data, Leg("ack", back, control_bytes, control_bytes)))
        request = Leg("request", out, control_bytes, control_bytes)
        answer = (*first, *back)
        # The overhead of the DMA comes once, before the first request.
        latency_ps = request.drain_ps + sum(
            hop.overhead_ps + hop.wire_ps for hop in (*out[len(start) :], *answer)
        )
        data = Leg(
            name="data",
            hops=answer,
            nbytes=nbytes,
            packet_bytes=packet_bytes,
            source=memory,
            sink=own,
            # The host requests any number of bytes at once.
            window=None
            if case.by_host
            else PacketWindow(self.topology.pe.dma.outstanding, latency_ps),
        )
        return TransferForm((request, data))

    def _origin(self, case: ProbeCase) -> tuple[RouteEnd, Serialiser | None, tuple[TimedHop, ...]]:
        """Where a transfer starts: the node, the memory there, and the hop before the route."""
        routes = self.routes
        if case.by_host:
            return (ORIGIN.sip, routes.graph.host), None, ()
        node = routes.graph.pe(ORIGIN.cube, ORIGIN.pe)
        return (ORIGIN.sip, node), routes.tcm(ORIGIN), (routes.dma(ORIGIN),)

    def _memory(self, case: ProbeCase) -> tuple[RouteEnd, Serialiser | None]:
        graph, (sip, cube, pe) = self.routes.graph, case.target
        match case.kind:
            case "HBM":
                return (sip, graph.hbm(cube, pe)), self.routes.hbm(case.target)
            case "TCM":
                return (sip, graph.pe(cube, pe)), self.routes.tcm(case.target)
            case "SRAM":
                return (sip, graph.sram(cube)), None

    def _address(self, case: ProbeCase) -> int:
        sip, cube, pe = case.target
        match case.kind:
            case "HBM":
                return self._addresses.pe_hbm_addr(sip, cube, pe, 0)
            case "TCM":
                return self._addresses.pe_tcm_addr(sip, cube, pe, 0)
            case "SRAM":
                return self._addresses.cube_sram_addr(sip, cube, 0)

    def _in_own_cube(self, found: dict[str, tuple[MemoryKind, PeCoordinates]]) -> None:
        pes = range(self.topology.pes_per_cube)
        others = [PeCoordinates(0, ORIGIN.cube, pe) for pe in pes if pe != ORIGIN.pe]
        for kind in PE_MEMORIES:
            near_name, far_name = (f"dma-{end}{SUFFIXES[kind]}" for end in ("near", "far"))
            if others:
                graph = self.routes.graph
                near, far = self._extremes(others, graph.hbm if kind == "HBM" else graph.pe)
                found |= {near_name: (kind, near), far_name: (kind, far)}
            else:
                self._leave_out("a cube has one PE", near_name, far_name)

    def _in_other_cubes(self, found: dict[str, tuple[MemoryKind, PeCoordinates]]) -> None:
        cubes, pes = range(self.topology.cubes), range(self.topology.pes_per_cube)
        others = [PeCoordinates(0, cube, pe) for cube in cubes if cube != ORIGIN.cube for pe in pes]
        if not others:
            self._leave_out("a SIP has one cube", "dma-cube-best", "dma-cube-worst")
            return
        best, worst = self._extremes(others, self.routes.graph.hbm)
        found |= {"dma-cube-best": ("HBM", best), "dma-cube-worst": ("HBM", worst)}

    def _in_other_sips(self, found: dict[str, tuple[MemoryKind, PeCoordinates]]) -> None:
        paths = {sip: self.routes.sips.path(ORIGIN.sip, sip) for sip in range(self.topology.sips)}
        for hops in (1, 2):
            at_distance = [sip for sip, path in paths.items() if len(path) == hops + 1]
            if at_distance:
                target = PeCoordinates(at_distance[0], ORIGIN.cube, ORIGIN.pe)
                found[f"dma-sip-{hops}"] = ("HBM", target)
            else:
                alone = self.topology.sips == 1
                reason = "there is one SIP" if alone else "the farthest SIP is 1 hop away"
                self._leave_out(reason, f"dma-sip-{hops}")

    def _extremes(
        self, targets: Iterable[PeCoordinates], node: Callable[[int, int], int]
    ) -> tuple[PeCoordinates, PeCoordinates]:
        """The targets with the least and the greatest round-trip latency; of equals the first."""
        route, here = self.routes.routes.route, self.routes.graph.pe(ORIGIN.cube, ORIGIN.pe)

        def latency_ps(target: PeCoordinates) -> int:
            there = node(target.cube, target.pe)
            return route(here, there).latency_ps + route(there, here).latency_ps

        # In both directions, since a request and its data may take different routes.
        latencies = {target: latency_ps(target) for target in targets}
        return min(latencies, key=latencies.__getitem__), max(latencies, key=latencies.__getitem__)

    def _leave_out(self, reason: str, *names: str) -> None:
        self.left_out |= dict.fromkeys(names, reason)


def _directions(name: str) -> tuple[Direction, ...]:
    if name.startswith("h2d"):
        return ("write",)
    return ("read",) if name.startswith("d2h") else BOTH
