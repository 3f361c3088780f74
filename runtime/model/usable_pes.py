"""The PEs of a SIP on which tensors and programs are placed: those that are not down.

Placements number PEs as if the machine had no others: `cubes` cubes, in rising order, of `per_cube`
PEs each. That is the least number of PEs which a cube has left, so that tensors are dealt evenly;
further PEs of other cubes have no tensors by default, and can be named.
"""

import re
from collections.abc import Sequence

from runtime.model.overrides import parts_of
from runtime.model.schema.topology_schema import Topology

CubePe = tuple[int, int]
_CUBE, _PE = re.compile(r"cube(\d+)"), re.compile(r"cube(\d+)\.pe(\d+)")


class UsablePes:
    """The PEs of a SIP that are not down."""

    def __init__(self, topology: Topology, sip: int) -> None:
        self._sip = sip
        down = parts_of(topology, sip).down
        cubes = {int(match[1]) for name in down if (match := _CUBE.fullmatch(name))}
        pes = {(int(match[1]), int(match[2])) for name in down if (match := _PE.fullmatch(name))}
        self.is_whole = not (cubes or pes)
        every = range(topology.pes_per_cube)
        self._pes = {
            cube: [pe for pe in every if (cube, pe) not in pes]
            for cube in range(topology.cubes)
            if cube not in cubes
        }
        self.cube_numbers: Sequence[int] = tuple(self._pes)
        self.cubes = len(self._pes)
        self.per_cube = min(map(len, self._pes.values()))

    def __contains__(self, pe: CubePe) -> bool:
        return pe[1] in self._pes.get(pe[0], ())

    def at(self, number: int) -> CubePe:
        """The coordinates of a PE, which are numbered cube by cube."""
        cube, pe = divmod(number, self.per_cube)
        return self.coordinates(cube, pe)

    def coordinates(self, cube: int, pe: int) -> CubePe:
        """The coordinates of the `pe`th PE of the `cube`th cube."""
        number = self.cube_numbers[cube]
        return number, self._pes[number][pe]

    def require(self, pes: Sequence[CubePe], use: str) -> None:
        """Raise `ValueError` if one of some PEs is down; `use` is what needs them."""
        if self.is_whole:
            return
        for cube, pe in pes:
            if (cube, pe) not in self:
                part = f"sip{self._sip}.cube{cube}"
                part += f".pe{pe}" if cube in self._pes else ""
                raise ValueError(f"{use} needs {part}, which is down")
