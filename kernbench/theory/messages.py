"""Closed forms of a send and a receive of one slot between two neighbouring SIPs that are idle."""

from kernbench.theory.floor_plan import FloorPlan
from kernbench.theory.kernel_costs import KernelCosts
from kernbench.theory.routes import TCM_GBS
from kernbench.theory.servers import serialised_ps
from kernbench.theory.topology_file import TopologyFile


class MessageTimes:
    """Closed forms of a message of one slot between the PEs 0 of two neighbouring SIPs.

    The PEs hold the elements in their own HBM slices; a packet of the fabric holds the slot.
    """

    def __init__(self, file: TopologyFile, packet_bytes: int) -> None:
        plan = FloorPlan(file)
        self._costs, self._packet_bytes = KernelCosts(file, packet_bytes), packet_bytes
        self._route = plan.between_pes((0, 0), (0, 0), 1)

    def send_ps(self, nbytes: int) -> int:
        """A send whose receive is posted: load, then until the slot has left the TCM."""
        costs = self._costs
        # The port of the TCM takes whole picoseconds for each packet.
        left_ps = serialised_ps(nbytes, self._packet_bytes, costs.file.number(TCM_GBS))
        sent_ps = costs.issue_ps + costs.commands.write_start_ps
        return costs.load_ps(nbytes) + sent_ps + left_ps

    def receive_ps(self, nbytes: int) -> int:
        """A receive whose send is posted: notice, load, slot, copy to memory."""
        costs = self._costs
        notice_ps = costs.issue_ps + costs.times.control_ps(self._route) + costs.ipcq_ps
        arrived_ps = costs.load_ps(nbytes) + costs.message_ps(self._route, nbytes)
        return notice_ps + arrived_ps + costs.kept_ps(nbytes)
