"""The barrier of a launch: its PEs signal to the M_CPUs, which release them when all have come.

Every signal is a control packet on the links of the chip. The M_CPU of a cube counts its PEs, that
of the first cube of the launch the cubes:

    PE --arrived--> M_CPU --arrived--> M_CPU of the first cube      the last PE of a cube, each cube
    PE <-released-- M_CPU <-released-- M_CPU of the first cube      the last cube: all PEs have come

A launch in one cube has no signals between M_CPUs.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from sip_node.chip.stored_ranges import StoredRanges


class LaunchBarrier:
    """What the M_CPUs have counted for one launch on `cubes`, which maps cubes to their PEs.

    `waiting` are the PEs (cube, pe) that have called it and are not released, in that order.
    """

    def __init__(
        self, cubes: Mapping[int, Sequence[int]], stored: StoredRanges | None = None
    ) -> None:
        self.cubes, self.stored = cubes, stored
        self.waiting: dict[tuple[int, int], None] = {}
        self._arrived: dict[int, int] = {}
        self._complete_cubes = 0

    @property
    def first_cube(self) -> int:
        """The cube whose M_CPU counts the cubes."""
        return min(self.cubes)

    @property
    def missing(self) -> list[tuple[int, int]]:
        """The PEs that have not called it, in ascending order."""
        every_pe = [(cube, pe) for cube, pes in self.cubes.items() for pe in pes]
        return sorted(at for at in every_pe if at not in self.waiting)

    def arrived(self, cube: int) -> bool:
        """A PE of a cube has arrived; returns whether it is the last one of the cube."""
        count = self._arrived.pop(cube, 0) + 1
        if count < len(self.cubes[cube]):
            self._arrived[cube] = count
            return False
        return True

    def cube_arrived(self) -> bool:
        """All PEs of a cube have arrived; returns whether it is the last cube."""
        self._complete_cubes += 1
        if self._complete_cubes < len(self.cubes):
            return False
        self._complete_cubes = 0
        # From here on stores are ordered behind those before the barrier.
        if self.stored is not None:
            self.stored.clear()
        return True


class BarrierSignal(Struct, frozen=True):
    """A control packet of a barrier, from or to a PE or an M_CPU."""

    barrier: LaunchBarrier
    step: Literal["pe arrived", "cube arrived", "released"]
