"""Mappers: the PEs of a SIP that take part in a collective, and their neighbours inside and outside
the SIP.
"""

from collections.abc import Callable
from dataclasses import dataclass

from runtime.ccl.cycles import grid_cycle
from runtime.ccl.topologies import mesh_2d_no_wrap, ring_1d, tree_binary
from runtime.model.parts.usable_pes import UsablePes
from runtime.model.topology import Topology

CubePe = tuple[int, int]


@dataclass(frozen=True)
class Mapping:
    """The participants of one SIP; `local` are their neighbours inside the SIP, `exchange` have
    neighbours in other SIPs.
    """

    participants: tuple[CubePe, ...]
    local: dict[CubePe, dict[str, CubePe]]
    exchange: frozenset[CubePe]


def leader_only(topology: Topology, root_cube: int) -> Mapping:  # noqa: ARG001 - the signature of a mapper
    """One PE takes part for its SIP: PE 0 of cube 0, or the first that is down in no SIP."""
    first = _usable(topology)[:1]
    return Mapping(first, {}, frozenset(first))


def all_pes(topology: Topology, root_cube: int) -> Mapping:  # noqa: ARG001 - the signature of a mapper
    """Every PE that is down in no SIP exchanges with the PE that has the same coordinates in other
    SIPs.
    """
    participants = _usable(topology)
    return Mapping(participants, {}, frozenset(participants))


def _usable(topology: Topology) -> tuple[CubePe, ...]:
    """The PEs that are down in no SIP."""
    usable = UsablePes(topology, 0)
    return tuple(
        (cube, pe)
        for cube in range(topology.cubes)
        for pe in range(topology.pes_per_cube)
        if (cube, pe) in usable
    )


def cube_leaders(topology: Topology, root_cube: int) -> Mapping:  # noqa: ARG001 - the signature of a mapper
    """PE 0 of every cube, with neighbours along the cube mesh and in other SIPs.

    Every cube may be the root: a kernel chooses at run time which of them exchanges with other
    SIPs.
    """
    mesh = topology.sip.cube_mesh
    local = {
        (cube, 0): {
            direction: (peer, 0)
            for direction, peer in mesh_2d_no_wrap(cube, mesh.w, mesh.h).items()
        }
        for cube in range(topology.cubes)
    }
    return Mapping(tuple(local), local, frozenset(local))


def pe_trees(topology: Topology, root_cube: int) -> Mapping:
    """Every PE: the PEs of a cube as a binary tree with root PE 0 (`pe_parent`, `pe_child_0`,
    `pe_child_1`), and `cube_leaders`.
    """
    leaders, count = cube_leaders(topology, root_cube), topology.pes_per_cube
    trees = {
        (cube, pe): {
            f"pe_{direction}": (cube, peer) for direction, peer in tree_binary(pe, count, 1).items()
        }
        for cube in range(topology.cubes)
        for pe in range(count)
    }
    local = {pe: neighbours | leaders.local.get(pe, {}) for pe, neighbours in trees.items()}
    return Mapping(tuple(local), local, leaders.exchange)


def pe_ring(topology: Topology, root_cube: int) -> Mapping:  # noqa: ARG001 - the signature of a mapper
    """Every PE: the PEs of a cube as a ring, E to the next number and W to the previous one."""
    local = {
        (cube, pe): {
            direction: (cube, peer)
            for direction, peer in ring_1d(pe, topology.pes_per_cube, 1).items()
        }
        for cube in range(topology.cubes)
        for pe in range(topology.pes_per_cube)
    }
    return Mapping(tuple(local), local, frozenset())


def cube_ring(topology: Topology, root_cube: int) -> Mapping:  # noqa: ARG001 - the signature of a mapper
    """PE 0 of every cube, in a ring along `grid_cycle` of the cube mesh: E leads to the next cube
    of the cycle.
    """
    mesh = topology.sip.cube_mesh
    cycle = grid_cycle(mesh.w, mesh.h)
    local = {
        (cube, 0): {
            direction: (cycle[peer], 0)
            for direction, peer in ring_1d(position, len(cycle), 1).items()
        }
        for position, cube in enumerate(cycle)
    }
    return Mapping(tuple(sorted(local)), local, frozenset())


MAPPERS: dict[str, Callable[[Topology, int], Mapping]] = {
    "leader_only": leader_only,
    "all_pes": all_pes,
    "cube_leaders": cube_leaders,
    "pe_trees": pe_trees,
    "pe_ring": pe_ring,
    "cube_ring": cube_ring,
}
