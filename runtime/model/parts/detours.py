"""Routes between the cubes of a SIP where ports are down.

A pair of cubes whose route along its row and its column (`routing`) is whole keeps it. Any other
pair takes a shortest path that goes *up* first and then *down*: a link leads up if it leads to a
cube that is nearer to the root, or as near and of a lower number; the root is the cube of the
lowest number that is not down (M. D. Schroeder et al., Autonet, 1991). Of equally short paths the
one whose first different step is W counts, then E, N, S.

No path turns from down to up, so the links of these paths have no cycle of dependencies; neither
have those of the others. With a virtual layer for each of the two kinds no packets can deadlock.
The IO chiplet begins and ends routes, and is not passed. Where its port in the column of a cube is
of no use, a route takes the port with the fewest cubes on the way, of equal ones the first.
"""

from collections import deque
from collections.abc import Sequence
from functools import cached_property

from runtime.core.trace import IO_CHIPLET
from runtime.model.parts.down_parts import DownParts
from runtime.model.schema.quantities import Side
from runtime.model.sip_plan import SipPlan

ORDER: tuple[Side, ...] = ("W", "E", "N", "S")


class Detours:
    """The sides by which routes leave cubes, in a SIP with parts that are down."""

    def __init__(self, plan: SipPlan, down: DownParts) -> None:
        self._plan, self._down = plan, down
        self._cubes = [each for each in range(plan.topology.cubes) if each not in down.cubes]
        self._from: dict[int, dict[int, tuple[Side, ...]]] = {}

    def is_whole(self, cube: int, sides: Sequence[Side]) -> bool:
        """Whether no link of a route from a cube by these sides is down."""
        for side in sides:
            if (cube, side) in self._down.ports:
                return False
            beside = self._plan.beside(cube, side)
            if beside is not None and beside != IO_CHIPLET:
                cube = beside
        return True

    def sides(self, source: int, target: int) -> tuple[Side, ...] | None:
        """The sides of a shortest path up, then down; None if no link leads there."""
        if source not in self._from:
            self._from[source] = self._paths_from(source)
        return self._from[source].get(target)

    def edge_cubes(self) -> list[int]:
        """The cubes with a port to the IO chiplet that is not down, in the order of the ports."""
        plan, edge = self._plan, self._plan.edge
        cubes = [cube for cube in self._cubes if plan.edge_distance(cube) == 0]
        return [cube for cube in cubes if (cube, edge) not in self._down.ports]

    def _paths_from(self, source: int) -> dict[int, tuple[Side, ...]]:
        """The path to each cube, by breadth-first search over cubes and whether one went down."""
        found: dict[int, tuple[Side, ...]] = {source: ()}
        seen = {(source, False)}
        queue = deque[tuple[int, bool, tuple[Side, ...]]]([(source, False, ())])
        while queue:
            cube, went_down, path = queue.popleft()
            for side in ORDER:
                beside = self._beside(cube, side)
                if beside is None:
                    continue
                down = self._rank[beside] > self._rank[cube]
                if (went_down and not down) or (beside, down) in seen:
                    continue
                seen.add((beside, down))
                found.setdefault(beside, (*path, side))
                queue.append((beside, down, (*path, side)))
        return found

    def _beside(self, cube: int, side: Side) -> int | None:
        """The cube on a side, over a link that is not down."""
        beside = self._plan.beside(cube, side)
        is_down = beside == IO_CHIPLET or (cube, side) in self._down.ports
        return None if is_down else beside

    @cached_property
    def _rank(self) -> dict[int, tuple[int, int]]:
        """The distance of each cube from the root, and its number."""
        ranks: dict[int, tuple[int, int]] = {}
        # A cube that no link leads to has a root of its own.
        for root in self._cubes:
            if root in ranks:
                continue
            ranks[root] = (0, root)
            queue = deque([root])
            while queue:
                cube = queue.popleft()
                for side in ORDER:
                    beside = self._beside(cube, side)
                    if beside is not None and beside not in ranks:
                        ranks[beside] = (ranks[cube][0] + 1, beside)
                        queue.append(beside)
        return ranks
