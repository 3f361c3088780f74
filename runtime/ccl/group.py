"""A process group: who takes part in its collectives and by which algorithm."""

from dataclasses import dataclass

from runtime.ccl.config import AlgorithmConfig
from runtime.hardware.topology import Topology


@dataclass(frozen=True)
class Group:
    """One rank's view of a process group."""

    rank: int
    world_size: int
    algorithm: AlgorithmConfig
    topology: Topology

    @property
    def sip_topology(self) -> str:
        """Neighbour topology between SIPs: the algorithm's own, or the system's where it says `system`."""
        own = self.algorithm.topology
        return self.topology.system.sips.topology if own == "system" else own

    @property
    def grid_w(self) -> int:
        """Columns of the SIP grid; a ring is one row."""
        return self.world_size if self.sip_topology == "ring_1d" else self.topology.sip_grid[0]

    @property
    def grid_h(self) -> int:
        """Rows of the SIP grid."""
        return 1 if self.sip_topology == "ring_1d" else self.topology.sip_grid[1]

    @property
    def fits(self) -> bool:
        """Whether the SIP grid has a place for every rank and no other."""
        return self.grid_w * self.grid_h == self.world_size <= self.topology.sips

    @property
    def wraps(self) -> bool:
        """Whether rows and columns of the SIP grid are closed to rings."""
        return self.sip_topology != "mesh_2d_no_wrap"

    def ring_bytes_within_scratch(self, copies: int) -> int:
        """How many bytes fit into one receive ring, and `copies` of them into the scratch of a kernel; at least 64."""
        ring_bytes = self.algorithm.n_slots * self.algorithm.slot_size
        return max(min(ring_bytes, self.topology.kernel_scratch_bytes // copies) // 64 * 64, 64)

    @property
    def root_cube(self) -> int:
        """The cube that speaks for its SIP; by default the last one."""
        root = self.algorithm.root_cube
        return self.topology.cubes - 1 if root is None else root
