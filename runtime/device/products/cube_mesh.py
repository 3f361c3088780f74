"""Trees over the mesh of cubes, along which cubes copy what one of them holds."""

from functools import lru_cache
from typing import NamedTuple

_NEAR = 2
"""Cubes at this distance from the home copy from it; with 3 a link would carry a slot twice."""


class CubeMesh(NamedTuple):
    """The cubes of a SIP, the PEs of each, and the scratch of a kernel."""

    width: int
    height: int
    pes: int
    scratch_bytes: int

    def distance(self, a: int, b: int) -> int:
        """Links between two cubes."""
        return sum(map(lambda x, y: abs(x - y), divmod(a, self.width), divmod(b, self.width)))


@lru_cache(maxsize=4096)
def copy_tree(
    mesh: CubeMesh, home: int, line: tuple[int, ...]
) -> dict[int, tuple[int | None, int]]:
    """The cube from which each cube of a line copies what `home` holds, None for the home itself,
    and the stage, from 1 on.
    """
    hub = min(line, key=lambda cube: (mesh.distance(home, cube), cube))
    tree: dict[int, tuple[int | None, int]] = {hub: (None, 1)}
    is_line = (
        len({each // mesh.width for each in line}) == 1
        or len({each % mesh.width for each in line}) == 1
    )
    behind = 1 if hub == home else 2
    for cube in sorted(line, key=lambda cube: (mesh.distance(hub, cube), cube)):
        if cube in tree:
            continue
        across = hub // mesh.width * mesh.width + cube % mesh.width
        down = cube // mesh.width * mesh.width + hub % mesh.width
        corner = next((each for each in (down, across) if each in line), hub)
        if corner not in (hub, cube):
            parent = corner
        elif hub == home and is_line and mesh.distance(hub, cube) > _NEAR:
            parent = min(tree, key=lambda each: (mesh.distance(each, cube), each))
        else:
            parent = hub
        if parent == hub:
            tree[cube] = (None if hub == home else hub, behind)
        else:
            tree[cube] = (parent, tree[parent][1] + 1)
    return tree


@lru_cache(maxsize=1024)
def all_gather_load(mesh: CubeMesh, shares: tuple[tuple[int, float], ...]) -> float:
    """The part of a tensor that passes the busiest link if every cube reads all of it directly from
    the cubes that hold the `shares`, (cube, share). Packets go along the row first.
    """
    loads = LinkShares(mesh, {})
    for home, share in shares:
        for cube in range(mesh.width * mesh.height):
            loads.add(home, cube, share)
    return loads.busiest()


class LinkShares(NamedTuple):
    """Shares that pass each link between cubes, in one direction."""

    mesh: CubeMesh
    loads: dict[tuple[int, int], float]

    def add(self, source: int, target: int, share: float) -> None:
        """Add a flow, which goes along the row first."""
        at, (row, column) = source, divmod(target, self.mesh.width)
        while at != target:
            here_row, here_column = divmod(at, self.mesh.width)
            if here_column != column:
                following = at + (1 if column > here_column else -1)
            else:
                following = at + self.mesh.width * (1 if row > here_row else -1)
            self.loads[at, following] = self.loads.get((at, following), 0.0) + share
            at = following

    def busiest(self) -> float:
        """The load of the busiest link."""
        return max(self.loads.values(), default=0.0)


def relay_targets(mesh: CubeMesh, home: int, turn: int) -> dict[int, tuple[int, ...]]:
    """The cubes that load what `home` holds, with the cubes to which each of them stores it: those
    in the row of the home and their columns, or the reverse for every other home and `turn`, by
    which parts of one home differ.

    Homes alternate along a row, and rows in pairs: the links have equal loads if each row
    alternates, too, but 128 rows of 4096 elements then take 7 % more time on the default machine.
    """
    row, column = divmod(home, mesh.width)
    rows = [tuple(range(first, first + mesh.width)) for first in _firsts(mesh)]
    columns = [tuple(range(first, mesh.width * mesh.height, mesh.width)) for first in rows[0]]
    if ((row + 1) // 2 + column + turn) % 2:
        return {cube: rows[cube // mesh.width] for cube in columns[column]}
    return {cube: columns[cube % mesh.width] for cube in rows[row]}


def _firsts(mesh: CubeMesh) -> range:
    """The first cube of each row."""
    return range(0, mesh.width * mesh.height, mesh.width)


@lru_cache(maxsize=1024)
def relayed_gather_load(mesh: CubeMesh, shares: tuple[tuple[int, float], ...]) -> float:
    """The part of a tensor that passes the busiest link with the copies of `relay_targets`."""
    loads = LinkShares(mesh, {})
    for home, share in shares:
        for turn in range(2):
            for cube, targets in relay_targets(mesh, home, turn).items():
                loads.add(home, cube, share / 2)
                for target in targets:
                    loads.add(cube, target, share / 2)
    return loads.busiest()
