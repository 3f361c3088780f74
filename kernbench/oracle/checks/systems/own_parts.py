"""Group p: parts of the machine with values of their own (`overrides`), by their names.

For each component and link with values of its own, an access whose route passes it; beside each
link that is down, an access on a detour; and for a PE a step of its matrix engine and a
stream of vectors. Expected are the closed forms with the values of the parts, to the picosecond. Of
SIPs with equal parts, and of the engines of equal PEs of a SIP, one is checked.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from kernbench import torch
from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.transfers.accesses import VERBS
from kernbench.oracle.theory.commands import FixedTimes
from kernbench.oracle.theory.engines.gemm import GemmShape, step_ps
from kernbench.oracle.theory.engines.vector_engine import Elements, VectorEngine
from kernbench.oracle.theory.paths.memory_access import MemoryAccess
from kernbench.oracle.theory.paths.route_times import in_system
from kernbench.oracle.theory.paths.routes import RouteEnd
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.core.dtypes import DType, float16, float32
from runtime.core.requests import PeDmaMsg
from runtime.core.trace import OpRecord
from runtime.device.launches.launch import launch_on
from runtime.device.rank.rank_state import running_rank
from runtime.language import tl
from runtime.language.value import Value
from runtime.model.addresses import AddressMap
from runtime.model.graph import ChipGraph
from runtime.model.parts.overrides import SipParts, parts_of
from runtime.model.parts.usable_pes import UsablePes
from runtime.model.schema.topology_schema import PartValue
from runtime.model.topology import Topology, parse_topology

_PE = re.compile(r"cube\d+\.pe\d+")
NBYTES = 4096
VECTORS = 10


@dataclass(frozen=True)
class _PartAccess:
    """A read or write of a memory by the DMA of a PE, through the part `name`."""

    name: str
    reader: RouteEnd
    memory: RouteEnd
    reads: bool


def own_parts(file: TopologyFile) -> list[Check]:
    """All checks of the group; none for a machine whose parts are equal."""
    if not file.get("overrides", None):
        return []
    return _PartChecks(file).checks()


class _PartChecks:
    def __init__(self, file: TopologyFile) -> None:
        self._file = file
        self._topology: Topology = parse_topology(file.text, "topology")
        self._access = MemoryAccess(file)
        self._addresses = AddressMap(self._topology)

    def checks(self) -> list[Check]:
        accesses = [*self._accesses(), *self._round_what_is_down()]
        return [*self._transfers(accesses), *self._computations(list(self._pes()))]

    def _pes(self) -> Iterator[tuple[int, str]]:
        """The PEs with values of their own, one of each that are equal."""
        for sip, parts in self._distinct():
            seen: list[dict[str, PartValue]] = []
            for name, values in sorted(parts.values.items()):
                if _PE.fullmatch(name) and values not in seen:
                    seen.append(values)
                    yield sip, name

    def _distinct(self) -> Iterator[tuple[int, SipParts]]:
        """The SIPs with parts of their own, one of each that are equal."""
        seen: list[SipParts] = []
        for sip in range(self._topology.sips):
            parts = parts_of(self._topology, sip)
            if not parts.is_uniform and parts not in seen:
                seen.append(parts)
                yield sip, parts

    def _accesses(self) -> Iterator[_PartAccess]:
        """An access for each part, the first of all whose route passes it."""
        for sip, parts in self._distinct():
            left = {*parts.values, *parts.links}
            for reader, memory in self._pairs(sip):
                for reads in (True, False):
                    for name in sorted(left & self._passed(sip, reader, memory, reads=reads)):
                        left.discard(name)
                        yield _PartAccess(name, reader, memory, reads)
                if not left:
                    break

    def _passed(self, sip: int, reader: RouteEnd, memory: RouteEnd, *, reads: bool) -> set[str]:
        """The components and links of a SIP that the data of an access passes."""
        ends = (memory, reader) if reads else (reader, memory)
        names, here = {reader.name, memory.name}, ends[0].name
        for hop in self._access.plan.route(*ends):
            if hop.sip == sip:
                names |= {hop.node, f"{here}->{hop.node}"}
            here = hop.node
        return names

    def _pairs(self, sip: int) -> Iterator[tuple[RouteEnd, RouteEnd]]:
        """Readers and memories that are not down: near ones first."""
        beside = (1, self._file["sip.cube_mesh.w"])
        pes = self._usable(sip)
        firsts = {cube: of_cube[0] for cube, of_cube in pes.items()}
        for cube, of_cube in pes.items():
            for pe in of_cube:
                yield RouteEnd("pe", sip, cube, pe), RouteEnd("hbm", sip, cube, pe)
        for cube, pe in firsts.items():
            yield RouteEnd("pe", sip, cube, pe), RouteEnd("sram", sip, cube)
        for cube, of_cube in pes.items():
            for pe, other in product(of_cube, of_cube):
                yield RouteEnd("pe", sip, cube, pe), RouteEnd("hbm", sip, cube, other)
        for cube, distance in product(firsts, beside):
            if cube + distance in firsts:
                memory = RouteEnd("hbm", sip, cube + distance, firsts[cube + distance])
                yield RouteEnd("pe", sip, cube, firsts[cube]), memory
        for neighbour in self._access.plan.neighbours(sip):
            there = self._usable(neighbour)
            for cube in sorted(firsts.keys() & there.keys()):
                memory = RouteEnd("hbm", neighbour, cube, there[cube][0])
                yield RouteEnd("pe", sip, cube, firsts[cube]), memory

    def _usable(self, sip: int) -> dict[int, list[int]]:
        """The PEs of a SIP that are not down, by cube."""
        usable = UsablePes(self._topology, sip)
        every = range(self._file.pes_per_cube)
        return {cube: [pe for pe in every if (cube, pe) in usable] for cube in usable.cube_numbers}

    def _round_what_is_down(self) -> Iterator[_PartAccess]:
        """An access between the cubes, and between the PEs of a cube, beside each link that is
        down.
        """
        for sip, _ in self._distinct():
            graph, pes = ChipGraph(self._topology, sip), self._usable(sip)
            for cube, side in sorted(graph.down.ports):
                beside = graph.beside(cube, side)
                if beside is not None and beside in pes and cube in pes:
                    reader = RouteEnd("pe", sip, cube, pes[cube][0])
                    memory = RouteEnd("hbm", sip, beside, pes[beside][0])
                    yield _PartAccess(f"cube{cube}.ucie.{side}.down", reader, memory, reads=True)
            for cube, of_cube in pes.items():
                if graph.down.router_links(cube):
                    reader = RouteEnd("pe", sip, cube, of_cube[0])
                    for pe in of_cube[1:]:
                        memory = RouteEnd("hbm", sip, cube, pe)
                        yield _PartAccess(f"cube{cube}.pe{pe}.round", reader, memory, reads=True)

    def _transfers(self, accesses: Sequence[_PartAccess]) -> Iterator[Check]:
        measured = self._measured_ps(accesses) if accesses else []
        for each, measured_ps in zip(accesses, measured, strict=True):
            transfer = self._access.read if each.reads else self._access.write
            name = in_system(each.name, each.reader.sip)
            reader, memory = (in_system(end.name, end.sip) for end in (each.reader, each.memory))
            yield Check(
                id=f"p.{name}",
                text=f"{reader} {VERBS[each.reads]} {NBYTES} B, {memory}",
                formula="sum overheads + sum wires + bytes / narrowest",
                expected=transfer(each.reader, each.memory, NBYTES).total_ps,
                measured=measured_ps,
                unit="ps",
            )

    def _measured_ps(self, accesses: Sequence[_PartAccess]) -> list[int]:
        """The time of each access, alone: those of a SIP one after the other, SIP by SIP."""
        times_ps: dict[_PartAccess, int] = {}
        # A memory that changes its direction in between would pay the penalty of that.
        for sip, reads in sorted({(each.reader.sip, each.reads) for each in accesses}):
            mine = [each for each in accesses if (each.reader.sip, each.reads) == (sip, reads)]

            def program(rank: int, sip: int = sip, mine: Sequence[_PartAccess] = mine) -> list[int]:
                device = running_rank().device
                requests = (self._request(each) for each in (mine if rank == sip else ()))
                waits = (device.wait(device.submit([each], "an access")) for each in requests)
                return [each.pe_exec_ps for each in waits]

            world = simulate(
                program,
                self._topology.sips,
                topology=self._file.text,
                data=False,
                remote_dma=True,
            )
            times_ps |= zip(mine, world.returned[sip], strict=True)
        return [times_ps[each] for each in accesses]

    def _request(self, access: _PartAccess) -> PeDmaMsg:
        sip, cube, pe = access.memory.sip, access.memory.cube, access.memory.pe
        if access.memory.kind == "sram":
            address = self._addresses.cube_sram_addr(sip, cube, 0)
        else:
            address = self._addresses.pe_hbm_addr(sip, cube, pe, 0)
        operation = "read" if access.reads else "write"
        return PeDmaMsg(access.reader.cube, access.reader.pe, operation, address, NBYTES)

    def _computations(self, pes: Sequence[tuple[int, str]]) -> Iterator[Check]:
        """A step of the matrix engine, and vectors of the vector engine, on each of the PEs."""
        if not pes:
            return
        tile = GemmShape(*(self._file[f"pe.tile.{side}"] for side in "mkn"))
        count = VECTORS * self._file["pe.math.lanes"]

        def kernel() -> None:
            tl.dot(_zeros((tile.m, tile.k), float16), _zeros((tile.k, tile.n), float16))
            block = _zeros((count,), float32)
            # The second one begins behind the end of the first.
            tl.exp(block)
            tl.exp(block)

        def program(rank: int) -> None:
            own = [_coordinates(name) for sip, name in pes if sip == rank]
            if own:
                launch_on("engines", kernel, (), [], sorted(own))
                torch.ahbm.synchronize()

        world = simulate(program, self._topology.sips, topology=self._file.text, data=False)
        for sip, name in pes:
            records = [
                each
                for engine in ("pe_gemm", "pe_math")
                for at, each in world.of(engine)
                if at == sip and (each.cube, each.pe) == _coordinates(name)
            ]
            yield from self._computed(sip, name, tile, count, records)

    def _computed(
        self, sip: int, name: str, tile: GemmShape, count: int, records: Sequence[OpRecord]
    ) -> Iterator[Check]:
        own, title = self._access.times.parts.file_of((sip, name)), in_system(name, sip)
        [step] = [each for each in records if each.engine == "pe_gemm"]
        first, second = [each.end_ps for each in records if each.engine == "pe_math"]
        yield Check(
            id=f"p.{title}.pe_gemm",
            text=f"a step of {tile.m} x {tile.k} x {tile.n} on {title}",
            formula="cycles / clock",
            expected=step_ps(own, tile, last=True),
            measured=step.end_ps - step.start_ps,
            unit="ps",
        )
        block = Elements(count)
        yield Check(
            id=f"p.{title}.pe_math",
            text=f"exp of {count:,} elements on {title}",
            formula="issue + longest path: fetch, engine, store",
            expected=FixedTimes(own).issue_ps
            + VectorEngine(own).elementwise_ps("exp", [block], block),
            measured=second - first,
            unit="ps",
        )


def _coordinates(name: str) -> tuple[int, int]:
    cube, pe = name.split(".")
    return int(cube.removeprefix("cube")), int(pe.removeprefix("pe"))


def _zeros(shape: Iterable[int], dtype: DType) -> Value:
    sizes = tuple(shape)
    return Value(sizes, dtype, np.zeros(sizes, dtype.numpy))
