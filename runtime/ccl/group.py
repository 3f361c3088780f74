"""The process group of a collective as its kernels see it: members, their order, grid and
algorithm.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt

from runtime.ccl.config import AlgorithmConfig
from runtime.model.topology import Topology

_GRIDS = frozenset({"mesh_2d", "torus_2d", "mesh_2d_no_wrap"})
_ROWS = frozenset(
    {
        "ring_1d",
        "ring_1d_unidir",
        "tree_binary",
        "hypercube",
        "hierarchical_3level",
        "fully_connected",
        "none",
    }
)


@dataclass(frozen=True)
class Group:
    """A process group as an algorithm numbers it: the number of this member, and the SIPs of all
    members by number.

    The kernels of an algorithm call these numbers ranks. They are the ranks of the process group in
    the order of `order`, which follows the links of the machine (`runtime.ccl.orders`).
    """

    rank: int
    sips: tuple[int, ...]
    algorithm: AlgorithmConfig
    topology: Topology

    @property
    def world_size(self) -> int:
        """The number of ranks in the group."""
        return len(self.sips)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The ranks of the process group, which rise with the SIPs, by number."""
        ranks = {sip: rank for rank, sip in enumerate(sorted(self.sips))}
        return tuple(ranks[sip] for sip in self.sips)

    @property
    def sip_topology(self) -> str:
        """The neighbour topology between SIPs: that of the algorithm, or that of the machine where
        it is `system`.
        """
        own = self.algorithm.topology
        return self.topology.system.sips.topology if own == "system" else own

    @property
    def grid_w(self) -> int:
        """The number of columns in the grid of ranks."""
        return self._grid[0]

    @property
    def grid_h(self) -> int:
        """The number of rows in the grid of ranks."""
        return self._grid[1]

    @property
    def wraps(self) -> bool:
        """Whether rows and columns of the grid of ranks are closed to rings."""
        return self.sip_topology != "mesh_2d_no_wrap"

    def ring_bytes_within_scratch(self, copies: int) -> int:
        """The most bytes of which one receive ring holds one copy, and the scratch of collectives
        `copies`.

        A multiple of 64, and at least 64.
        """
        # 64 bytes hold whole elements of every type, and slots are multiples of 64 bytes.
        per_copy = self.topology.collective_scratch_bytes // copies
        return max(min(self.algorithm.ring_bytes, per_copy) // 64 * 64, 64)

    @property
    def slots_of_send(self) -> int:
        """The most slots that a send loads at once: an eighth of a receive ring, as many as the
        scratch of sends holds; 0 if that does not hold one.
        """
        most = self.topology.transfer_scratch_bytes // self.algorithm.slot_size
        return min(max(self.algorithm.n_slots // 8, 1), most)

    @property
    def loads_of_send(self) -> int:
        """The number of `slots_of_send` that the scratch of sends holds."""
        load_bytes = max(self.slots_of_send, 1) * self.algorithm.slot_size
        return self.topology.transfer_scratch_bytes // load_bytes

    @property
    def root_cube(self) -> int:
        """The cube that exchanges with other SIPs on behalf of its SIP; by default the last one."""
        root = self.algorithm.root_cube
        return self.topology.cubes - 1 if root is None else root

    @property
    def _grid(self) -> tuple[int, int]:
        """(columns, rows): the grid of the SIPs if the group is all of them, else the most square
        one with columns >= rows.

        A topology that is not a grid is one row.
        """
        if self.sip_topology in _ROWS:
            return self.world_size, 1
        if _has_all_of_a_grid(self.sips, self.topology):
            return self.topology.sip_grid
        # A group of some SIPs has no rows and columns in the machine, so it gets a grid of its own.
        height = next(
            rows for rows in range(isqrt(self.world_size), 0, -1) if self.world_size % rows == 0
        )
        return self.world_size // height, height


def is_grid(sips: Sequence[int], topology: Topology) -> bool:
    """Whether SIPs are all those of a machine, with direct links along rows and columns."""
    return (
        _has_all_of_a_grid(sips, topology)
        and topology.system.sips.fabric == "direct"
        and min(topology.sip_grid) > 1
    )


def _has_all_of_a_grid(sips: Sequence[int], topology: Topology) -> bool:
    return topology.system.sips.topology in _GRIDS and sorted(sips) == list(range(topology.sips))
