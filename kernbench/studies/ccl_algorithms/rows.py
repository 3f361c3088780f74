"""The points of the study, its rows, and the content of `ccl_algorithms.json`.

A point is a call by collective, algorithm, number of ranks and size, on a ring or a grid of SIPs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt
from types import ModuleType
from typing import NamedTuple

from msgspec import Struct

from kernbench.benches.collective_perf.collective import COLLECTIVES, PerfCase
from kernbench.benches.flags import check_range
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.catalogue import sizes_by_factor
from kernbench.studies.study_results import StudyResults, wrong_count
from runtime.ccl.algorithm_module import algorithms_with, module_of
from runtime.ccl.config import CclConfig, parse_ccl
from runtime.ccl.group import Group
from runtime.ccl.plan import InstallPlan
from runtime.ccl.selection import CallShape
from runtime.model.topology import Topology, parse_topology

RANKS = (2, 3, 4, 8)
SMALLEST_BYTES, NEXT_BYTES, STEP = 2, 128, 4
"""One element, then each size `STEP` times the previous; below 128 bytes latency alone counts."""
MOST_BYTES = 1 << 26


NAMES = {
    "all_reduce": "all_reduce",
    "reduce": "reduce",
    "broadcast": "broadcast",
    "all_gather_into_tensor": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "all_to_all_single": "alltoall",
}
"""The collectives, and their names in `perf`."""


BY_PARTS = frozenset({"reduce_scatter_tensor", "all_to_all_single"})
"""The collectives whose operand has a part for every rank."""
ROOTED = frozenset({"broadcast", "reduce"})
BASELINES = frozenset({"ring_naive"})
"""Algorithms that others are compared to, and that are not selected."""


GRID_SIZES = (32_768, 65_536, 131_072, 524_288)
"""Bytes of a rank's tensor."""


class MeasuredGrid(NamedTuple):
    """Columns and rows of SIPs, the topology of the machine, and the numbers of cubes of a tensor.

    On one cube, its link to the IO chiplet is the limit of every algorithm.
    """

    columns: int
    rows: int
    topology: str
    cubes: tuple[int, ...]

    @property
    def ranks(self) -> int:
        """All SIPs."""
        return self.columns * self.rows

    def __str__(self) -> str:
        return f"{self.topology} {self.columns} x {self.rows}"

    def of(self, file: TopologyFile) -> str:
        """The text of a topology file with this grid, and direct links."""
        return file.on_a_grid(self.topology, self.columns, self.rows).text


GRIDS = (MeasuredGrid(2, 2, "torus_2d", (2, 16)), MeasuredGrid(3, 3, "mesh_2d_no_wrap", (2,)))
"""The grids that gain the least, one of an even and one of an odd side: on larger tori the two
directions of each link share the bytes. Nine SIPs with tensors on 16 cubes gain more than four."""


def places(max_bytes: int) -> Iterator[tuple[MeasuredGrid, int, int]]:
    """(grid, cubes, bytes) of the points, up to a size."""
    for grid in GRIDS:
        for cubes in grid.cubes:
            yield from ((grid, cubes, nbytes) for nbytes in GRID_SIZES if nbytes <= max_bytes)


@dataclass(frozen=True)
class AlgorithmPoint:
    """One call on about `nbytes` a rank, with the text of both configuration files."""

    topology: str
    ccl: str
    collective: str
    algorithm: str
    ranks: int
    nbytes: int
    grid: str = ""
    cubes: int = 1
    held_out: bool = False

    @property
    def case(self) -> PerfCase:
        """The same call as a case of `kernbench perf`."""
        collective = COLLECTIVES[NAMES[self.collective]]
        # The operand has a part for every rank: sizes are rounded down to whole elements of each.
        parts = self.ranks if self.collective in BY_PARTS else 1
        return PerfCase(
            collective=collective,
            ranks=self.ranks,
            count=max(self.nbytes // SMALLEST_BYTES // parts, 1),
            dtype_name="half",
            op="sum",
            root=0 if self.collective in ROOTED else -1,
        )

    @property
    def cost(self) -> int:
        """Events grow with the bytes on the links, and with the chips that are built."""
        # Building a chip takes about as long as the events of 50 kB.
        return self.ranks * (self.nbytes + 50_000 * self.cubes)

    def __str__(self) -> str:
        return call_label(self)


def call_label(call: "AlgorithmPoint | AlgorithmRow") -> str:
    """Collective, algorithm, ranks and size."""
    grid = f" {call.grid} {call.cubes} cubes" if call.grid else ""
    return f"{call.collective} {call.algorithm} {call.ranks} ranks{grid} {call.nbytes} B"


def plan_points(topology: str, ccl: str, max_bytes: int) -> tuple[AlgorithmPoint, ...]:
    """All points, on rings and grids of the SIPs of a topology file, those held out last.

    Raises `UsageError` if `max_bytes` is below the second size or above `MOST_BYTES`.
    """
    check_range(NEXT_BYTES, MOST_BYTES, max_bytes=max_bytes)
    file, parsed = TopologyFile.of(topology), parse_ccl(ccl, "ccl.yaml")
    # Rendering a file takes milliseconds: once for each ring, not for each point.
    rings = {ranks: file.on_a_ring(ranks).text for ranks in RANKS}
    names = {collective: algorithms(parsed, topology, collective) for collective in NAMES}
    on_rings, held_out = (
        tuple(
            AlgorithmPoint(
                topology=text,
                ccl=ccl,
                collective=collective,
                algorithm=name,
                ranks=ranks,
                nbytes=nbytes,
                held_out=is_held_out,
            )
            for collective in NAMES
            for ranks, text in rings.items()
            for nbytes in sizes_of(max_bytes)
            # One element has no parts.
            if nbytes > SMALLEST_BYTES or collective not in BY_PARTS
            for name in names[collective]
            if not is_held_out or name not in BASELINES
        )
        for sizes_of, is_held_out in ((sizes, False), (held_out_sizes, True))
    )
    return (*on_rings, *_on_grids(file, parsed, ccl, max_bytes), *held_out)


def _on_grids(
    file: TopologyFile, parsed: CclConfig, ccl: str, max_bytes: int
) -> Iterator[AlgorithmPoint]:
    """All-reduces by the algorithms that only grids have, and by those of the selection."""
    texts = {grid: grid.of(file) for grid in GRIDS}
    names = {grid: _compared(parsed, text) for grid, text in texts.items()}
    for grid, cubes, nbytes in places(max_bytes):
        for name in names[grid]:
            yield AlgorithmPoint(
                topology=texts[grid],
                ccl=ccl,
                collective="all_reduce",
                algorithm=name,
                ranks=grid.ranks,
                nbytes=nbytes,
                grid=str(grid),
                cubes=cubes,
            )


def _compared(ccl: CclConfig, grid: str) -> tuple[str, ...]:
    selection = ccl.file.selection
    rows = selection.by_size.get("all_reduce", ()) if selection else ()
    selected = {row.algorithm for row in rows}
    on_rings = algorithms(ccl, grid, "all_reduce")
    on_grid = _interchangeable(ccl, parse_topology(grid, "topology.yaml"), "all_reduce")
    return tuple(name for name in on_grid if name in selected or name not in on_rings)


def algorithms(ccl: CclConfig, topology: str, collective: str) -> tuple[str, ...]:
    """The interchangeable algorithms of a collective on rings of SIPs, in the order of `ccl.yaml`.

    An algorithm with a local phase sums over the cubes of a SIP too: its result is another one, so
    the selection by size cannot replace a flat algorithm with it.
    """
    # Whether there is a local phase depends on the mapper of the algorithm; two ranks show it.
    pair = parse_topology(TopologyFile.of(topology).on_a_ring(2).text, "topology.yaml")
    return _interchangeable(ccl, pair, collective)


def _interchangeable(ccl: CclConfig, topology: Topology, collective: str) -> tuple[str, ...]:
    """The algorithms without a local phase that support all SIPs of a topology."""
    sips = tuple(range(topology.sips))
    groups = {
        name: Group(0, sips, ccl.resolve(name), topology)
        for name in algorithms_with(collective, ccl)
    }
    return tuple(
        name
        for name, group in groups.items()
        if not InstallPlan(group, ccl.source).mapping.local
        and _supports(module_of(name, ccl), group)
    )


def _supports(module: ModuleType, group: Group) -> bool:
    """Whether an algorithm supports the ranks of a group."""
    try:
        module.arguments(group, SMALLEST_BYTES)
    except ValueError:
        return False
    return True


def sizes(max_bytes: int) -> Iterator[int]:
    """Bytes of a rank's tensor."""
    yield SMALLEST_BYTES
    yield from sizes_by_factor(NEXT_BYTES, max_bytes, STEP)


def held_out_sizes(max_bytes: int) -> Iterator[int]:
    """The geometric mean of each size from `NEXT_BYTES` on and the next one."""
    for nbytes, following in pairwise(tuple(sizes(max_bytes))[1:]):
        yield isqrt(nbytes * following)


class AlgorithmRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One call of a collective on `nbytes` a rank, and its simulated time.

    `skew_ps` is the time between the first and the last start of the ranks' kernels, `wrong` the
    number of wrong elements over all ranks. `grid` is the grid of the SIPs, empty for a ring, and
    `cubes` the number of cubes on which the tensor of a rank lies. The selection is made without
    the rows that are `held_out`: they show what it costs at sizes which it was not made for.
    """

    collective: str
    algorithm: str
    ranks: int
    nbytes: int
    time_ps: int
    skew_ps: int
    wrong: int
    grid: str = ""
    cubes: int = 1
    held_out: bool = False

    @property
    def call(self) -> CallShape:
        """The properties of a call by which the selection chooses."""
        return CallShape(self.nbytes, self.ranks, self.cubes, bool(self.grid))

    @property
    def label(self) -> str:
        """Collective, algorithm, ranks and size."""
        return call_label(self)

    @property
    def faults(self) -> list[str]:
        """A wrong result."""
        return [*wrong_count(self.wrong)]


class AlgorithmResults(StudyResults[AlgorithmRow], frozen=True, forbid_unknown_fields=True):
    """All rows, and the topology file they were measured on."""

    @property
    def of_tables(self) -> tuple[AlgorithmRow, ...]:
        """The rows from which the selection is made."""
        return tuple(row for row in self.rows if not row.held_out)

    @property
    def held_out(self) -> tuple[AlgorithmRow, ...]:
        """The rows at sizes between those of the selection."""
        return tuple(row for row in self.rows if row.held_out)
