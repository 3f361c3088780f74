"""What a collective kernel knows of its process group: who takes part, in which order, and by which
algorithm.
"""

from dataclasses import dataclass
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
    """One rank's view of a process group: its `rank` there, and the SIPs of all members by their
    rank there.
    """

    rank: int
    sips: tuple[int, ...]
    algorithm: AlgorithmConfig
    topology: Topology

    @property
    def world_size(self) -> int:
        """How many ranks the group has."""
        return len(self.sips)

    @property
    def sip_topology(self) -> str:
        """Neighbour topology between SIPs: the algorithm's own, or the system's where it says
        `system`.
        """
        own = self.algorithm.topology
        return self.topology.system.sips.topology if own == "system" else own

    @property
    def grid_w(self) -> int:
        """Columns of the grid of ranks."""
        return self._grid[0]

    @property
    def grid_h(self) -> int:
        """StridedBlock of the grid of ranks."""
        return self._grid[1]

    @property
    def wraps(self) -> bool:
        """Whether rows and columns of the grid of ranks are closed to rings."""
        return self.sip_topology != "mesh_2d_no_wrap"

    def ring_bytes_within_scratch(self, copies: int) -> int:
        """How many bytes fit into one receive ring, and `copies` of them into the scratch of
        collectives; at least 64.
        """
        return max(
            min(self.algorithm.ring_bytes, self.topology.collective_scratch_bytes // copies)
            // 64
            * 64,
            64,
        )

    @property
    def root_cube(self) -> int:
        """The cube that speaks for its SIP; by default the last one."""
        root = self.algorithm.root_cube
        return self.topology.cubes - 1 if root is None else root

    @property
    def _grid(self) -> tuple[int, int]:
        """That of the SIPs where it is one and all of them take part, else the most square one, not
        higher than wide.

        Topologies that are no grids are one row.
        """
        if self.sip_topology in _ROWS:
            return self.world_size, 1
        sips = self.topology.system.sips
        if sips.topology in _GRIDS and self.sips == tuple(range(self.topology.sips)):
            return self.topology.sip_grid
        height = next(
            rows for rows in range(isqrt(self.world_size), 0, -1) if self.world_size % rows == 0
        )
        return self.world_size // height, height
