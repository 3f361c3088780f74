"""The programs of a launch with `grid=`: a kernel runs once for each point of a grid.

Programs are numbered with axis 0 fastest, and dealt to the PEs of the launch in the order of
(cube, PE): round robin, or in blocks of neighbours, which lie where neighbouring elements lie. A PE
runs its programs one after the other:

    grid (3, 2) on 4 PEs      PE 0       PE 1       PE 2       PE 3
    round robin               (0, 0)     (1, 0)     (2, 0)     (0, 1)
                              (1, 1)     (2, 1)
    first (0, 2, 3, 5)        (0, 0)     (2, 0)     (0, 1)     (2, 1)
                              (1, 0)                (1, 1)
"""

from collections.abc import Iterator, Sequence
from math import prod
from operator import index
from typing import SupportsIndex, cast

from msgspec import Struct

MOST_AXES = 3
ALONE = (
    "a launch with grid= has neither queues nor a barrier: the programs of a PE run one after the "
    "other, so none can wait for another"
)
"""Why a program neither sends nor receives, nor waits for others."""

GridPoint = tuple[int, ...]
"""The ids of a program, by axis."""


class ProgramGrid(Struct, frozen=True):
    """The number of programs along each axis, one to three.

    In blocks, `first` has the number of the first program of each PE of the launch, in rising
    order from 0 on.
    """

    lengths: tuple[int, ...]
    first: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """The number of programs."""
        return prod(self.lengths)

    def program(self, number: int) -> GridPoint:
        """The ids of the program with a number."""
        ids: list[int] = []
        for length in self.lengths:
            number, own = divmod(number, length)
            ids.append(own)
        return tuple(ids)

    def dealt(self, pe: int, pes: int) -> "DealtPrograms":
        """The programs of a PE, which is number `pe` of the `pes` PEs of the launch."""
        if not self.first:
            return DealtPrograms(self, range(pe, self.count, pes))
        return DealtPrograms(self, range(self.first[pe], [*self.first, self.count][pe + 1]))


class DealtPrograms(Struct, frozen=True):
    """The programs of a grid that one PE runs, in this order."""

    grid: ProgramGrid
    numbers: range

    def __iter__(self) -> Iterator[GridPoint]:
        return map(self.grid.program, self.numbers)


def checked_grid(grid: object) -> ProgramGrid:
    """A grid that a program passes; the errors name what it passed.

    `TypeError` unless it is a tuple or a list of integers, `ValueError` for a number of axes other
    than 1 to 3, and for an axis without programs.
    """
    problem = f"grid {grid!r}: it is a tuple of 1 to 3 positive integers, such as (8,) or (4, 2)"
    if not isinstance(grid, tuple | list):
        raise TypeError(problem)
    lengths: list[int] = []
    for length in cast("Sequence[object]", grid):
        if not isinstance(length, SupportsIndex) or isinstance(length, bool):
            raise TypeError(problem)
        lengths.append(index(length))
    if not 1 <= len(lengths) <= MOST_AXES or min(lengths) < 1:
        raise ValueError(problem)
    return ProgramGrid(tuple(lengths))


def program_text(program: GridPoint | None) -> str:
    """The text for a program in messages, behind the name of its kernel; empty without a grid."""
    return "" if program is None else f" program {program}"
