"""The cases of a topology: from the host or from PE 0 of cube 0 of SIP 0 to the memories that an architect asks about."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from kernbench.probe.closed_form import ClosedForm, Leg
from kernbench.probe.way import End, Serialiser, Ways
from runtime.core.coordinates import PeCoordinates
from runtime.core.requests import MemoryReadMsg, MemoryWriteMsg, PeDmaMsg, Request
from runtime.model.addresses import AddressMap
from runtime.model.schema import Topology

Operation = Literal["write", "read"]
Kind = Literal["HBM", "TCM", "SRAM"]
SUFFIXES: Mapping[Kind, str] = {"HBM": "", "TCM": "-tcm", "SRAM": "-sram"}
"""How the name of a case tells which memory it goes to."""
PE_MEMORIES: tuple[Kind, ...] = ("HBM", "TCM")
BOTH: tuple[Operation, ...] = ("write", "read")
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
"""Every case there is, and the group it is shown in."""


@dataclass(frozen=True)
class Case:
    """A transfer to or from the memory of kind `kind` at `place`, by the host or by the DMA of `ORIGIN`."""

    name: str
    kind: Kind
    place: PeCoordinates
    operations: tuple[Operation, ...]

    @property
    def by_host(self) -> bool:
        """Whether the host asks; else the DMA of `ORIGIN` does."""
        return NAMES[self.name] == "host"

    @property
    def target(self) -> str:
        """The memory in short: `sip1.cube0.pe0 HBM`."""
        sip = f"sip{self.place.sip}." if self.place.sip else ""
        pe = "" if self.kind == "SRAM" else f".pe{self.place.pe}"
        return f"{sip}cube{self.place.cube}{pe} {self.kind}"


class Cases:
    """The cases that a topology has, in the order of `NAMES`; `left_out` says why one is missing."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.ways = Ways(topology)
        self._addresses = AddressMap(topology)
        found: dict[str, tuple[Kind, PeCoordinates]] = {}
        self.left_out: dict[str, str] = {}
        for kind, suffix in SUFFIXES.items():
            found |= {f"h2d-write{suffix}": (kind, ORIGIN), f"d2h-read{suffix}": (kind, ORIGIN)}
        found |= {"dma-own": ("HBM", ORIGIN), "dma-sram": ("SRAM", ORIGIN)}
        self._in_own_cube(found)
        self._in_other_cubes(found)
        self._in_other_sips(found)
        self.cases = tuple(
            Case(name, *found[name], _operations(name)) for name in NAMES if name in found
        )

    def request(self, case: Case, operation: Operation, nbytes: int) -> Request:
        """What the host asks for; a transfer starts with the first byte of a memory."""
        address = {
            "HBM": lambda: self._addresses.pe_hbm_addr(*case.place, 0),
            "TCM": lambda: self._addresses.pe_tcm_addr(*case.place, 0),
            "SRAM": lambda: self._addresses.cube_sram_addr(case.place.sip, case.place.cube, 0),
        }[case.kind]()
        if not case.by_host:
            return PeDmaMsg(ORIGIN.cube, ORIGIN.pe, operation, address, nbytes)
        return (
            MemoryWriteMsg(address, nbytes, b"")
            if operation == "write"
            else MemoryReadMsg(address, nbytes)
        )

    def capacity_bytes(self, case: Case) -> int:
        """The largest transfer: what the memory holds, and for a DMA also the TCM at its other end."""
        topology = self.topology
        capacity = {
            "HBM": topology.hbm_slice_bytes,
            "TCM": topology.tcm_bytes,
            "SRAM": topology.sram_bytes,
        }[case.kind]
        return capacity if case.by_host else min(capacity, topology.tcm_bytes)

    def closed_form(self, case: Case, operation: Operation, nbytes: int) -> ClosedForm:
        """A write sends data and gets an acknowledgement, a read sends a request and gets data."""
        ways, packet_bytes, control_bytes = (
            self.ways,
            self.topology.packet_bytes,
            self.topology.control_bytes,
        )
        here: End = (
            ORIGIN.sip,
            ways.graph.host if case.by_host else ways.graph.pe(ORIGIN.cube, ORIGIN.pe),
        )
        own = None if case.by_host else ways.tcm(ORIGIN)
        there, memory = self._memory(case)
        start = () if case.by_host else (ways.dma(ORIGIN),)
        out, back = (*start, *ways.way(here, there)), ways.way(there, here)
        if operation == "write":
            data = Leg("data", out, nbytes, packet_bytes, own, memory)
            return ClosedForm((data, Leg("ack", back, control_bytes, control_bytes)))
        request = Leg("request", out, control_bytes, control_bytes)
        return ClosedForm((request, Leg("data", back, nbytes, packet_bytes, memory, own)))

    def _memory(self, case: Case) -> tuple[End, Serialiser | None]:
        graph, (sip, cube, pe) = self.ways.graph, case.place
        match case.kind:
            case "HBM":
                return (sip, graph.hbm(cube, pe)), self.ways.hbm(case.place)
            case "TCM":
                return (sip, graph.pe(cube, pe)), self.ways.tcm(case.place)
            case "SRAM":
                return (sip, graph.sram(cube)), None

    def _in_own_cube(self, found: dict[str, tuple[Kind, PeCoordinates]]) -> None:
        others = [
            PeCoordinates(0, ORIGIN.cube, pe)
            for pe in range(self.topology.pes_per_cube)
            if pe != ORIGIN.pe
        ]
        for kind in PE_MEMORIES:
            suffix = SUFFIXES[kind]
            if others:
                near, far = self._ends(
                    others, self.ways.graph.hbm if kind == "HBM" else self.ways.graph.pe
                )
                found |= {f"dma-near{suffix}": (kind, near), f"dma-far{suffix}": (kind, far)}
            else:
                self._leave_out("a cube has one PE", f"dma-near{suffix}", f"dma-far{suffix}")

    def _in_other_cubes(self, found: dict[str, tuple[Kind, PeCoordinates]]) -> None:
        cubes, pes = range(self.topology.cubes), range(self.topology.pes_per_cube)
        others = [PeCoordinates(0, cube, pe) for cube in cubes if cube != ORIGIN.cube for pe in pes]
        if not others:
            self._leave_out("a SIP has one cube", "dma-cube-best", "dma-cube-worst")
            return
        best, worst = self._ends(others, self.ways.graph.hbm)
        found |= {"dma-cube-best": ("HBM", best), "dma-cube-worst": ("HBM", worst)}

    def _in_other_sips(self, found: dict[str, tuple[Kind, PeCoordinates]]) -> None:
        paths = {sip: self.ways.sips.path(ORIGIN.sip, sip) for sip in range(self.topology.sips)}
        for hops in (1, 2):
            at = [sip for sip, path in paths.items() if len(path) == hops + 1]
            if at:
                found[f"dma-sip-{hops}"] = ("HBM", PeCoordinates(at[0], ORIGIN.cube, ORIGIN.pe))
            else:
                alone = self.topology.sips == 1
                self._leave_out(
                    "there is one SIP" if alone else "the farthest SIP is 1 hop away",
                    f"dma-sip-{hops}",
                )

    def _ends(
        self, places: Iterable[PeCoordinates], node: Callable[[int, int], int]
    ) -> tuple[PeCoordinates, PeCoordinates]:
        """The places with the least and the greatest latency there and back; of equal ones the first."""
        route, here = self.ways.routes.route, self.ways.graph.pe(ORIGIN.cube, ORIGIN.pe)

        def latency_ps(place: PeCoordinates) -> int:
            there = node(place.cube, place.pe)
            return route(here, there).latency_ps + route(there, here).latency_ps

        by_latency = {place: latency_ps(place) for place in places}
        return min(by_latency, key=by_latency.__getitem__), max(
            by_latency, key=by_latency.__getitem__
        )

    def _leave_out(self, why: str, *names: str) -> None:
        self.left_out |= dict.fromkeys(names, why)


def _operations(name: str) -> tuple[Operation, ...]:
    if name.startswith("h2d"):
        return ("write",)
    return ("read",) if name.startswith("d2h") else BOTH
