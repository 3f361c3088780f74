"""Mappers: which PEs of a SIP take part in a collective, which of them meet their neighbours inside
and outside the SIP.
"""

from collections.abc import Callable
from dataclasses import dataclass

from runtime.ccl.topologies import mesh_2d_no_wrap, tree_binary
from runtime.model.topology import Topology

CubePe = tuple[int, int]


@dataclass(frozen=True)
class Mapping:
    """The PEs of one SIP that take part; `local` are neighbours inside the SIP, `exchange` have
    neighbours outside it.
    """

    participants: tuple[CubePe, ...]
    local: dict[CubePe, dict[str, CubePe]]
    exchange: frozenset[CubePe]


def leader_only(topology: Topology, root_cube: int) -> Mapping:  # noqa: ARG001 - the signature of a mapper
    """PE 0 of cube 0 alone speaks for its SIP."""
    return Mapping(((0, 0),), {}, frozenset({(0, 0)}))


def all_pes(topology: Topology, root_cube: int) -> Mapping:  # noqa: ARG001 - the signature of a mapper
    """Every PE meets the PE at the same place in other SIPs."""
    everyone = tuple(
        (cube, pe) for cube in range(topology.cubes) for pe in range(topology.pes_per_cube)
    )
    return Mapping(everyone, {}, frozenset(everyone))


def cube_leaders(topology: Topology, root_cube: int) -> Mapping:
    """PE 0 of every cube, neighbours as the cube mesh; the one on the root cube meets its like in
    other SIPs.
    """
    mesh = topology.sip.cube_mesh
    local = {
        (cube, 0): {way: (peer, 0) for way, peer in mesh_2d_no_wrap(cube, mesh.w, mesh.h).items()}
        for cube in range(topology.cubes)
    }
    return Mapping(tuple(local), local, frozenset({(root_cube, 0)}))


def pe_trees(topology: Topology, root_cube: int) -> Mapping:
    """Every PE: those of a cube as a binary tree below PE 0 (`pe_parent`, `pe_child_0`,
    `pe_child_1`), and `cube_leaders`.
    """
    leaders, count = cube_leaders(topology, root_cube), topology.pes_per_cube
    trees = {
        (cube, pe): {f"pe_{way}": (cube, peer) for way, peer in tree_binary(pe, count, 1).items()}
        for cube in range(topology.cubes)
        for pe in range(count)
    }
    local = {at: ways | leaders.local.get(at, {}) for at, ways in trees.items()}
    return Mapping(tuple(local), local, leaders.exchange)


MAPPERS: dict[str, Callable[[Topology, int], Mapping]] = {
    "leader_only": leader_only,
    "all_pes": all_pes,
    "cube_leaders": cube_leaders,
    "pe_trees": pe_trees,
}
