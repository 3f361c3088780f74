"""Closed forms of a send and a receive of one slot between two neighbouring SIPs that are idle."""

from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.topology_file import TopologyFile


class MessageTimes:
    """Closed forms of a message of one slot between the PEs 0 of two neighbouring SIPs.

    The PEs hold the elements in their own HBM slices; a packet of the fabric holds the slot.
    """

    def __init__(self, file: TopologyFile, packet_bytes: int) -> None:
        plan = FloorPlan(file)
        self._costs = KernelCosts(file, packet_bytes)
        self._route = plan.between_pes((0, 0), (0, 0), 1)

    def send_ps(self, nbytes: int) -> int:
        """A send whose receive is posted: load, then until the slot has left the TCM."""
        return self._costs.load_ps(nbytes) + self._costs.send_ps(nbytes)

    def receive_ps(self, nbytes: int) -> int:
        """A receive whose send is posted: notice, load, slot, copy to memory."""
        costs = self._costs
        notice_ps = costs.issue_ps + costs.times.control_ps(self._route) + costs.ipcq_ps
        arrived_ps = costs.load_ps(nbytes) + costs.message_ps(self._route, nbytes)
        return notice_ps + arrived_ps + costs.kept_ps(nbytes)
