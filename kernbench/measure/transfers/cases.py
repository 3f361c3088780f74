"""The transfers of `probe`: from the host or from PE 0 of cube 0 of SIP 0 to various memories."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from kernbench.oracle.theory.paths.least_latencies import with_least_latencies
from kernbench.oracle.theory.paths.memory_access import MemoryAccess
from kernbench.oracle.theory.paths.route_times import RouteTimes
from kernbench.oracle.theory.paths.routes import EndKind, RouteEnd
from kernbench.oracle.theory.paths.transfers import TransferForm
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import UsageError
from runtime.core.requests import MemoryReadMsg, MemoryWriteMsg, PeDmaMsg, Request
from runtime.model.addresses import AddressMap
from runtime.model.parts.usable_pes import UsablePes
from runtime.model.schema.topology_schema import Topology

Direction = Literal["write", "read"]
MemoryKind = Literal["HBM", "TCM", "SRAM"]
SUFFIXES: Mapping[MemoryKind, str] = {"HBM": "", "TCM": "-tcm", "SRAM": "-sram"}
"""End of the name of a case, by the memory that it accesses."""
PE_MEMORIES: tuple[MemoryKind, ...] = ("HBM", "TCM")
_ENDS: Mapping[MemoryKind, EndKind] = {"HBM": "hbm", "TCM": "pe", "SRAM": "sram"}
BOTH: tuple[Direction, ...] = ("write", "read")
ORIGIN = PeCoordinates(0, 0, 0)
"""The PE whose DMA is probed."""
_PE = RouteEnd("pe", *ORIGIN)

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
    def origin(self) -> RouteEnd:
        """The end at which the transfer starts: the host, or the DMA of `ORIGIN`."""
        return RouteEnd("host") if self.by_host else _PE

    @property
    def end(self) -> RouteEnd:
        """The memory, as an end of routes."""
        return RouteEnd(_ENDS[self.kind], *self.target)

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
        self._usable = UsablePes(topology, ORIGIN.sip)
        if (ORIGIN.cube, ORIGIN.pe) not in self._usable:
            raise UsageError("probe: its transfers begin at cube0.pe0, which is down in a SIP")
        file = TopologyFile(topology.values())
        self.access = MemoryAccess(with_least_latencies(file))
        self._plan, self._times = self.access.plan, RouteTimes(file)
        self._addresses = AddressMap(topology)
        ends: dict[str, tuple[MemoryKind, PeCoordinates]] = {}
        self.left_out: dict[str, str] = {}
        for kind, suffix in SUFFIXES.items():
            ends |= {f"h2d-write{suffix}": (kind, ORIGIN), f"d2h-read{suffix}": (kind, ORIGIN)}
        ends |= {"dma-own": ("HBM", ORIGIN), "dma-sram": ("SRAM", ORIGIN)}
        self._in_own_cube(ends)
        self._in_other_cubes(ends)
        self._in_other_sips(ends)
        self.cases = tuple(
            ProbeCase(name, *ends[name], _directions(name)) for name in NAMES if name in ends
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
        transfer = self.access.write if direction == "write" else self.access.read
        return transfer(case.origin, case.end, nbytes)

    def _address(self, case: ProbeCase) -> int:
        sip, cube, pe = case.target
        match case.kind:
            case "HBM":
                return self._addresses.pe_hbm_addr(sip, cube, pe, 0)
            case "TCM":
                return self._addresses.pe_tcm_addr(sip, cube, pe, 0)
            case "SRAM":
                return self._addresses.cube_sram_addr(sip, cube, 0)

    @property
    def _pes(self) -> Iterator[PeCoordinates]:
        """The PEs of SIP 0 that are not down."""
        for cube in range(self.topology.cubes):
            for pe in range(self.topology.pes_per_cube):
                if (cube, pe) in self._usable:
                    yield PeCoordinates(ORIGIN.sip, cube, pe)

    def _in_own_cube(self, ends: dict[str, tuple[MemoryKind, PeCoordinates]]) -> None:
        others = [each for each in self._pes if each.cube == ORIGIN.cube and each != ORIGIN]
        for kind in PE_MEMORIES:
            near_name, far_name = (f"dma-{end}{SUFFIXES[kind]}" for end in ("near", "far"))
            if others:
                near, far = self._extremes(others, _ENDS[kind])
                ends |= {near_name: (kind, near), far_name: (kind, far)}
            else:
                self._leave_out("a cube has one PE", near_name, far_name)

    def _in_other_cubes(self, ends: dict[str, tuple[MemoryKind, PeCoordinates]]) -> None:
        others = [each for each in self._pes if each.cube != ORIGIN.cube]
        if not others:
            self._leave_out("a SIP has one cube", "dma-cube-best", "dma-cube-worst")
            return
        best, worst = self._extremes(others, "hbm")
        ends |= {"dma-cube-best": ("HBM", best), "dma-cube-worst": ("HBM", worst)}

    def _in_other_sips(self, ends: dict[str, tuple[MemoryKind, PeCoordinates]]) -> None:
        paths = {sip: self._plan.sip_path(ORIGIN.sip, sip) for sip in range(self.topology.sips)}
        for hops in (1, 2):
            at_distance = [sip for sip, path in paths.items() if len(path) == hops + 1]
            if at_distance:
                target = PeCoordinates(at_distance[0], ORIGIN.cube, ORIGIN.pe)
                ends[f"dma-sip-{hops}"] = ("HBM", target)
            else:
                alone = self.topology.sips == 1
                reason = "there is one SIP" if alone else "the farthest SIP is 1 hop away"
                self._leave_out(reason, f"dma-sip-{hops}")

    def _extremes(
        self, targets: Iterable[PeCoordinates], kind: EndKind
    ) -> tuple[PeCoordinates, PeCoordinates]:
        """The targets with the least and the greatest round-trip latency; of equals the first."""
        latency_ps, route = self._times.latency_ps, self._plan.route

        def round_trip_ps(target: PeCoordinates) -> int:
            end = RouteEnd(kind, *target)
            return latency_ps(route(_PE, end)) + latency_ps(route(end, _PE))

        # In both directions, since a request and its data may take different routes.
        latencies = {target: round_trip_ps(target) for target in targets}
        return min(latencies, key=latencies.__getitem__), max(latencies, key=latencies.__getitem__)

    def _leave_out(self, reason: str, *names: str) -> None:
        self.left_out |= dict.fromkeys(names, reason)


def _directions(name: str) -> tuple[Direction, ...]:
    if name.startswith("h2d"):
        return ("write",)
    return ("read",) if name.startswith("d2h") else BOTH
