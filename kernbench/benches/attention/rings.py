"""Rings of PEs of one SIP: the ranks of an attention kernel, and the queues between them."""

from dataclasses import dataclass

from kernbench import tl
from runtime.model.directions import OPPOSITE


@dataclass(frozen=True)
class Ring:
    """PEs in a ring: rank r is the PE `ranks[r]`, a (cube, pe), and holds block r of each tensor.

    `order` lists the ranks along the ring; each sends to the next one in the direction `towards`
    of the same position, and the last one to the first.
    """

    ranks: tuple[tuple[int, int], ...]
    order: tuple[int, ...]
    towards: tuple[str, ...]

    def here(self) -> "RingPosition":
        """The position of the PE that runs the kernel; `ValueError` if it is not in the ring."""
        cube, pe = tl.program_id(1), tl.program_id(0)
        if (cube, pe) not in self.ranks:
            raise ValueError(
                f"cube {cube} pe {pe} runs the kernel, but is not one of the {len(self.ranks)} PEs "
                "of the ring; the tensors of the launch lie on other PEs than those of the ring"
            )
        return RingPosition(self, self.order.index(self.ranks.index((cube, pe))))


@dataclass(frozen=True)
class RingPosition:
    """One PE of a ring, which sends to the next and receives from the previous PE."""

    ring: Ring
    index: int

    @property
    def rank(self) -> int:
        """The rank of this PE."""
        return self.ring.order[self.index]

    @property
    def towards(self) -> str:
        """The direction to the next PE."""
        return self.ring.towards[self.index]

    @property
    def source(self) -> str:
        """The direction from the previous PE."""
        return OPPOSITE[self.ring.towards[self.index - 1]]

    def rank_behind(self, steps: int) -> int:
        """The rank `steps` positions before this one: the origin of what arrives in that step."""
        return self.ring.order[self.index - steps]


def pe_ring(pes: int, cube: int = 0) -> Ring:
    """The PEs of a cube, in the order of their numbers: the queues of the mapper `pe_ring`."""
    ranks = tuple((cube, pe) for pe in range(pes))
    return Ring(ranks, tuple(range(pes)), ("E",) * pes)


def cube_square(mesh_width: int) -> Ring:
    """PE 0 of 2 x 2 cubes at the north-west corner of a mesh, as a snake: east, south, west, north.

    Every step is one link of the mesh, which need not wrap: the queues of the mapper
    `cube_leaders`.
    """
    cubes = (0, 1, mesh_width, mesh_width + 1)
    return Ring(tuple((cube, 0) for cube in cubes), (0, 1, 3, 2), ("E", "S", "W", "N"))
