"""Routes between the cubes of a SIP round what is down, derived from the file.

A route along row and column counts if it is whole. Otherwise it is the shortest of the paths that
lead up first, then down; of equally short ones the first in the order W, E, N, S of their steps. A
step leads up if it ends nearer to the root, or as near at a lower number; the root is the first
cube that is not down. To the IO chiplet the straight route counts, else the shortest one to any of
its ports.
"""

from functools import cached_property
from itertools import pairwise

from kernbench.oracle.theory.parts import PartNumbers
from kernbench.oracle.theory.paths.sip_grid import SipGrid
from kernbench.oracle.theory.topology_file import TopologyFile

Sides = tuple[str, ...]
OPPOSITE = {"N": "S", "S": "N", "W": "E", "E": "W"}


def sip_path(grid: SipGrid, parts: PartNumbers, source: int, target: int) -> list[int]:
    """The SIPs of a route round links that are down.

    It keeps to the rule of the grid from the first SIP on from which that is whole. To there, it is
    a shortest way; of several, the neighbour of the lowest number counts.
    """
    paths = {sip: grid.path(sip, target) for sip in range(grid.sips)}
    whole = {
        sip: path
        for sip, path in paths.items()
        if not any(is_cut(parts, *hop) for hop in pairwise(path))
    }
    while source not in whole:
        ways = [
            [sip, *whole[other]]
            for sip in paths.keys() - whole.keys()
            for other in whole
            if grid.distance(sip, other) == 1 and not is_cut(parts, sip, other)
        ]
        if not ways:
            raise ValueError(f"no route from SIP {source} to SIP {target}")
        best = min(ways, key=lambda way: (len(way), way[:2]))
        whole[best[0]] = best
    return whole[source]


def is_cut(parts: PartNumbers, sip: int, other: int) -> bool:
    """Whether the link between two SIPs is down, at either of its ports."""
    ends = ((sip, f"io.ucie.sip{other}"), (other, f"io.ucie.sip{sip}"))
    return any(parts.is_down(*end) for end in ends)


class SipDetours:
    """The sides by which routes leave the cubes of one SIP."""

    def __init__(self, file: TopologyFile, parts: PartNumbers, sip: int) -> None:
        self._parts, self._sip, self._cubes = parts, sip, file.cubes
        self._columns, self._rows = file["sip.cube_mesh.w"], file["sip.cube_mesh.h"]
        self._edge: str = file["sip.io_chiplet.edge"]

    def between(self, source: int, target: int) -> Sides:
        """The sides of a route between two cubes."""
        (row, column), (to_row, to_column) = (
            divmod(cube, self._columns) for cube in (source, target)
        )
        across = ("E" if to_column > column else "W",) * abs(to_column - column)
        straight = across + ("S" if to_row > row else "N",) * abs(to_row - row)
        return straight if self._is_whole(source, straight) else self._detour(source, target)

    def to_io(self, source: int) -> Sides:
        """The sides of a route to the IO chiplet, the last one that of its port."""
        straight = (self._edge,) * (1 + self._depth(source))
        if self._is_whole(source, straight):
            return straight
        paths = [self.between(source, last) for last in self._at_edge]
        return (*min(paths, key=len), self._edge)

    def from_io(self, target: int) -> tuple[int, Sides]:
        """The cube by which a route from the IO chiplet enters, and its sides from there."""
        depth = self._depth(target)
        step = {"N": self._columns, "S": -self._columns, "W": 1, "E": -1}[self._edge]
        first, inwards = target - depth * step, (OPPOSITE[self._edge],) * depth
        if not self._is_dead(first, self._edge) and self._is_whole(first, inwards):
            return first, inwards
        paths = [(cube, self.between(cube, target)) for cube in self._at_edge]
        return min(paths, key=lambda each: len(each[1]))

    def is_dead_link(self, cube: int, cells: tuple[tuple[int, int], tuple[int, int]]) -> bool:
        """Whether the link between two routers of a cube is down, in either direction."""
        a, b = (f"cube{cube}.router.r{row}c{column}" for row, column in cells)
        return any(self._parts.is_down(self._sip, name) for name in (f"{a}->{b}", f"{b}->{a}"))

    def _detour(self, source: int, target: int) -> Sides:
        # The paths of one length, in the order of their steps.
        paths: list[tuple[Sides, tuple[int, ...]]] = [((), (source,))]
        seen = set[tuple[int, bool]]()
        while paths:
            for sides, cubes in paths:
                if cubes[-1] == target:
                    return sides
            longer = [
                ((*sides, side), (*cubes, beside))
                for sides, cubes in paths
                for side, beside in self._beside(cubes[-1])
                if self._is_legal((*cubes, beside))
            ]
            paths = []
            for sides, cubes in longer:
                # What a path may do next depends on its end and its last step alone.
                state = cubes[-1], self._ranks[cubes[-1]] > self._ranks[cubes[-2]]
                if state not in seen:
                    seen.add(state)
                    paths.append((sides, cubes))
        raise ValueError(f"no route from cube {source} to cube {target} of SIP {self._sip}")

    def _is_legal(self, cubes: tuple[int, ...]) -> bool:
        """Whether no step up follows a step down."""
        downs = [self._ranks[to] > self._ranks[cube] for cube, to in pairwise(cubes)]
        return downs == sorted(downs)

    @cached_property
    def _ranks(self) -> dict[int, tuple[int, int]]:
        ranks: dict[int, tuple[int, int]] = {}
        for root in range(self._cubes):
            if root in ranks or self._parts.is_down(self._sip, f"cube{root}"):
                continue
            ring, distance = {root}, 0
            while ring:
                ranks |= {cube: (distance, cube) for cube in ring}
                beside = {other for cube in ring for _, other in self._beside(cube)}
                ring, distance = beside - ranks.keys(), distance + 1
        return ranks

    @cached_property
    def _at_edge(self) -> list[int]:
        """The cubes with a port to the IO chiplet that is not down."""
        cubes = [cube for cube in range(self._cubes) if self._depth(cube) == 0]
        return [cube for cube in cubes if not self._is_dead(cube, self._edge)]

    def _beside(self, cube: int) -> list[tuple[str, int]]:
        return [
            (side, beside)
            for side in "WENS"
            if (beside := self._neighbour(cube, side)) is not None
            if not self._is_dead(cube, side)
        ]

    def _neighbour(self, cube: int, side: str) -> int | None:
        row, column = divmod(cube, self._columns)
        row += {"N": -1, "S": 1}.get(side, 0)
        column += {"W": -1, "E": 1}.get(side, 0)
        inside = 0 <= row < self._rows and 0 <= column < self._columns
        return row * self._columns + column if inside else None

    def _is_whole(self, cube: int, sides: Sides) -> bool:
        for side in sides:
            if self._is_dead(cube, side):
                return False
            beside = self._neighbour(cube, side)
            cube = cube if beside is None else beside
        return True

    def _is_dead(self, cube: int, side: str) -> bool:
        """Whether the link on a side of a cube is down: a port, the link, or a cube."""
        beside = self._neighbour(cube, side)
        here = f"cube{cube}.ucie.{side}"
        if beside is None:
            row, column = divmod(cube, self._columns)
            facing = f"io.ucie.mesh{column if self._edge in 'NS' else row}"
            names = [f"cube{cube}", here, facing]
        else:
            facing = f"cube{beside}.ucie.{OPPOSITE[side]}"
            names = [f"cube{cube}", f"cube{beside}", here, facing]
        names += [f"{here}->{facing}", f"{facing}->{here}"]
        return any(self._parts.is_down(self._sip, name) for name in names)

    def _depth(self, cube: int) -> int:
        """Cubes between a cube and the IO chiplet."""
        row, column = divmod(cube, self._columns)
        return {
            "N": row,
            "S": self._rows - 1 - row,
            "W": column,
            "E": self._columns - 1 - column,
        }[self._edge]
