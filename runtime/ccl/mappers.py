"""Mappers: the PEs of a SIP that take part in a collective, and their neighbours inside and outside
the SIP.
"""

from collections.abc import Callable
from dataclasses import dataclass

from runtime.ccl.topologies import mesh_2d_no_wrap, tree_binary
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
    """PE 0 of cube 0 takes part for its SIP."""
    return Mapping(((0, 0),), {}, frozenset({(0, 0)}))


def all_pes(topology: Topology, root_cube: int) -> Mapping:  # noqa: ARG001 - the signature of a mapper
    """Every PE exchanges with the PE that has the same coordinates in other SIPs."""
    participants = tuple(
        (cube, pe) for cube in range(topology.cubes) for pe in range(topology.pes_per_cube)
    )
    return Mapping(participants, {}, frozenset(participants))


def cube_leaders(topology: Topology, root_cube: int) -> Mapping:
    """PE 0 of every cube, with neighbours along the cube mesh; that of the root cube exchanges with
    other SIPs.
    """
    mesh = topology.sip.cube_mesh
    local = {
        (cube, 0): {
            direction: (peer, 0)
            for direction, peer in mesh_2d_no_wrap(cube, mesh.w, mesh.h).items()
        }
        for cube in range(topology.cubes)
    }
    return Mapping(tuple(local), local, frozenset({(root_cube, 0)}))


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


MAPPERS: dict[str, Callable[[Topology, int], Mapping]] = {
    "leader_only": leader_only,
    "all_pes": all_pes,
    "cube_leaders": cube_leaders,
    "pe_trees": pe_trees,
}
