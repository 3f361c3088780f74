"""The PEs on which tensors and programs are placed: those that are down in no SIP.

Ranks run one program, whose tensors lie at the same coordinates on every SIP. Placements number PEs
as if the machine had no others: `cubes` cubes, in rising order, of `per_cube` PEs each. That is the
least number of PEs which a cube has left, so that tensors are dealt evenly; further PEs of other
cubes have no tensors by default.
"""

import re
from collections.abc import Sequence

from runtime.model.parts.overrides import parts_of
from runtime.model.schema.topology_schema import Topology

CubePe = tuple[int, int]
_CUBE, _PE = re.compile(r"cube(\d+)"), re.compile(r"cube(\d+)\.pe(\d+)")


class UsablePes:
    """The PEs that placements of SIP `sip` deal with; `in` tests for one of them."""

    def __init__(self, topology: Topology, sip: int) -> None:
        self._sip = sip
        self._own_cubes, self._own_pes = _down(topology, sip)
        cubes, pes = set(self._own_cubes), set(self._own_pes)
        for other in range(topology.sips) if topology.overrides else ():
            of_other = _down(topology, other)
            cubes |= of_other[0]
            pes |= of_other[1]
        self.is_whole = not (cubes or pes)
        every = range(topology.pes_per_cube)
        self._pes = {
            cube: [pe for pe in every if (cube, pe) not in pes]
            for cube in range(topology.cubes)
            if cube not in cubes
        }
        self.cube_numbers: Sequence[int] = tuple(self._pes)
        self.cubes = len(self._pes)
        self.per_cube = min(map(len, self._pes.values()), default=0)
        # A list of all: every tensor is placed by it.
        self._order = [
            (cube, pe) for cube, of_cube in self._pes.items() for pe in of_cube[: self.per_cube]
        ]

    def __contains__(self, pe: CubePe) -> bool:
        return pe[1] in self._pes.get(pe[0], ())

    def at(self, number: int) -> CubePe:
        """The coordinates of a PE, which are numbered cube by cube."""
        return self._order[number]

    def coordinates(self, cube: int, pe: int) -> CubePe:
        """The coordinates of the `pe`th PE of the `cube`th cube."""
        return self._order[cube * self.per_cube + pe]

    def require(self, pes: Sequence[CubePe], use: str) -> None:
        """Raise `ValueError` if one of some PEs of this SIP is down; `use` is what needs them."""
        if not (self._own_cubes or self._own_pes):
            return
        for cube, pe in pes:
            part = f"sip{self._sip}.cube{cube}"
            if cube in self._own_cubes:
                raise ValueError(f"{use} needs {part}, which is down")
            if (cube, pe) in self._own_pes:
                raise ValueError(f"{use} needs {part}.pe{pe}, which is down")


def _down(topology: Topology, sip: int) -> tuple[set[int], set[CubePe]]:
    """The cubes and the PEs of a SIP that are down."""
    names = parts_of(topology, sip).down
    cubes = {int(match[1]) for name in names if (match := _CUBE.fullmatch(name))}
    pes = {(int(match[1]), int(match[2])) for name in names if (match := _PE.fullmatch(name))}
    return cubes, pes
