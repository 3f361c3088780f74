"""All-reduces on grids of SIPs: the points of the study, and the row of the selection that follows.

Some algorithms need SIPs in rows and columns, and use more links where a tensor lies on several
cubes. They are compared with the algorithms that the selection has on rings. Such an algorithm has
a row from the measured size on from which it is the fastest, or at most 2 % slower, on every grid
and number of cubes.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.ccl_algorithms.rows import AlgorithmRow
from runtime.ccl.selection import Choice

SIZES = (32_768, 65_536, 131_072, 524_288)
"""Bytes of a rank's tensor."""
AS_FAST = 0.02
"""The excess of a time that counts as equal."""


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
        grid = {
            "count": self.ranks,
            "topology": self.topology,
            "w": self.columns,
            "h": self.rows,
            "fabric": "direct",
        }
        return file.with_values({"system.sips": file["system.sips"] | grid}).text


GRIDS = (MeasuredGrid(2, 2, "torus_2d", (2, 16)), MeasuredGrid(3, 3, "mesh_2d_no_wrap", (2,)))
"""The grids that gain the least, one of an even and one of an odd side: on larger tori the two
directions of each link share the bytes. Nine SIPs with tensors on 16 cubes gain more than four."""


def places(max_bytes: int) -> Iterator[tuple[MeasuredGrid, int, int]]:
    """(grid, cubes, bytes) of the points, up to a size."""
    for grid in GRIDS:
        for cubes in grid.cubes:
            yield from ((grid, cubes, nbytes) for nbytes in SIZES if nbytes <= max_bytes)


def grid_choices(rows: Sequence[AlgorithmRow]) -> tuple[Choice, ...]:
    """The rows of the selection for algorithms that rings do not have, at most one for each."""
    on_rings = {row.algorithm for row in rows if not row.grid}
    on_grids = [row for row in rows if row.grid]
    names = dict.fromkeys(row.algorithm for row in on_grids if row.algorithm not in on_rings)
    sizes = {name: _first_size(on_grids, name) for name in names}
    return tuple(
        Choice(
            algorithm=name,
            from_bytes=nbytes,
            from_cubes=min(row.cubes for row in on_grids),
            on_grid=True,
        )
        for name, nbytes in sizes.items()
        if nbytes is not None
    )


def _first_size(rows: Sequence[AlgorithmRow], name: str) -> int | None:
    """The least size from which on an algorithm is everywhere as fast as the fastest one."""
    first: int | None = None
    for nbytes in sorted({row.nbytes for row in rows}, reverse=True):
        of_size = [row for row in rows if row.nbytes == nbytes]
        own = {(row.grid, row.cubes): row.time_ps for row in of_size if row.algorithm == name}
        if any(own[row.grid, row.cubes] > (1 + AS_FAST) * row.time_ps for row in of_size):
            break
        first = nbytes
    return first
