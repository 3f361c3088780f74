"""Times of the commands of a kernel on PE 0 of a cube of an idle system, in picoseconds.

A command is issued (PE CPU and scheduler), then handled by DMA, IPCQ or the vector engine. Elements
are int32. A packet of the fabric holds at least one slot, so that a slot is copied out of its ring
in one piece. `MessageTimes` composes the commands of a send and a receive.
"""

from kernbench.oracle.theory.alpha_beta import AlphaBeta
from kernbench.oracle.theory.engines.vector_engine import Elements, VectorEngine
from kernbench.oracle.theory.paths.floor_plan import FloorPlan
from kernbench.oracle.theory.paths.memory_access import MemoryAccess, pe_and_slice
from kernbench.oracle.theory.paths.routes import TCM_GBS, Route
from kernbench.oracle.theory.servers import serialised_ps, transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile

ITEM_BYTES = 4
"""An element is int32: each sum is exact modulo 2^32."""
_PE = 0, 0


class KernelCosts:
    """The command times of one topology file, with slots written in packets of `packet_bytes`."""

    def __init__(self, file: TopologyFile, packet_bytes: int) -> None:
        self.file, self._access = file, MemoryAccess(file)
        self.times, self._plan = self._access.times, self._access.plan
        self.vector = VectorEngine(file)
        self._packet_bytes = packet_bytes
        self.cubes, self.pes = file.cubes, file.pes_per_cube
        self.commands = self._access.commands
        self.issue_ps, self.ipcq_ps = self.commands.issue_ps, self.commands.ipcq_ps

    def to_sip(self, hops: int = 1) -> Route:
        """Route from PE 0 of the last cube to the same PE of the SIP `hops` links away."""
        here = self.cubes - 1, 0
        return self._plan.between_pes(here, here, hops)

    def to_cube(self, cube: int, other: int) -> Route:
        """Route from PE 0 of a cube to PE 0 of another cube of the same SIP."""
        return self._plan.between_pes((cube, 0), (other, 0))

    def to_pe(self, pe: int, other: int) -> Route:
        """Route from a PE to another PE of its cube."""
        return self._plan.between_pes((0, pe), (0, other))

    def alpha_ps(self, route: Route) -> int:
        """alpha: issue, DMA, all overheads and wires of the route, and the IPCQ of the receiver."""
        sent_ps = self.issue_ps + self.commands.write_start_ps
        return sent_ps + self.times.latency_ps(route) + self.ipcq_ps

    def alpha_beta(self, route: Route) -> AlphaBeta:
        """Alpha and B of a route; B is the least bandwidth on it.

        Messages are forwarded cut-through: the bytes are paid once, at the narrowest link, however
        many SIPs forward them.
        """
        return AlphaBeta(self.alpha_ps(route), self.times.narrowest_gbs(route))

    def message_ps(self, route: Route, nbytes: int) -> int:
        """Alpha + n/B: from the command that sends until the slot is usable by the receiver."""
        return self.issue_ps + self.slot_ps(route, nbytes)

    def slot_ps(self, route: Route, nbytes: int) -> int:
        """The same without the issue of the command: from the DMA channel on."""
        write_ps = self.times.ring_write_ps(route, nbytes, self._packet_bytes, TCM_GBS)
        return write_ps + self.times.announcement_ps(())

    def forwarded_ps(self, hops: int, nbytes: int) -> int:
        """A message to the rank `hops` links ahead on a ring where all ranks send at once.

        alpha + n/B, and for each SIP that forwards it the time by which n/B exceeds a crossing: a
        link sends the message of its own SIP first, then the forwarded message.
        """
        route = self.to_sip(hops)
        link_ps = transfer_ps(nbytes, self.times.narrowest_gbs(route))
        one_hop_ps, two_hops_ps = (self.times.latency_ps(self.to_sip(count)) for count in (1, 2))
        # The difference leaves one crossing: ports, wire and IO NoC of the forwarding SIP.
        crossing_ps = two_hops_ps - one_hop_ps
        return self.message_ps(route, nbytes) + (hops - 1) * max(link_ps - crossing_ps, 0)

    def send_ps(self, nbytes: int) -> int:
        """Time from a command that sends to the next command: the slot has then left the TCM."""
        # The command completes when the slot has been read from the TCM; the link is not awaited.
        return self.issue_ps + self.left_ps(nbytes)

    def left_ps(self, nbytes: int) -> int:
        """The same without the issue of the command: from the DMA channel on."""
        port_gbs = self.file.number(TCM_GBS)
        # The port takes whole picoseconds for each packet.
        return self.commands.write_start_ps + serialised_ps(nbytes, self._packet_bytes, port_gbs)

    def copy_ps(self, nbytes: int) -> int:
        """A slot from its ring to the scratch buffer: twice through the one port of the TCM."""
        return self.commands.read_start_ps + 2 * self.tcm_ps(nbytes)

    def kept_ps(self, nbytes: int) -> int:
        """A slot from its ring straight to the own slice: DMA, data, acknowledgement."""
        return self._access.copy(*pe_and_slice(_PE, _PE), nbytes).total_ps

    def add_ps(self, nbytes: int) -> int:
        """Addition of two operands of `nbytes`: fetch, compute and store overlap."""
        return self._math_ps("add", 2, nbytes)

    def fill_ps(self, nbytes: int) -> int:
        """An operand of `nbytes` that is computed from nothing: compute, store."""
        return self._math_ps("full", 0, nbytes)

    def join_ps(self, nbytes: int) -> int:
        """Concatenation of pieces to one operand of `nbytes`: fetch, move, store."""
        return self._math_ps("cat", 1, nbytes)

    def load_ps(self, nbytes: int) -> int:
        """Load from the own slice: command, MMU, DMA, request, data."""
        return self._access.load_ps(_PE, _PE, nbytes)

    def store_ps(self, nbytes: int) -> int:
        """Store to the own slice: command, MMU, DMA, data, acknowledgement."""
        return self._access.store_ps(_PE, _PE, nbytes)

    @property
    def store_command_ps(self) -> int:
        """Time from a command that stores in the background to the next command: issue, MMU."""
        return self.commands.translated_ps

    def tcm_ps(self, nbytes: int) -> int:
        """`nbytes` once through the port of the TCM."""
        return transfer_ps(nbytes, self.file.number(TCM_GBS))

    def _math_ps(self, function: str, operands: int, nbytes: int) -> int:
        """Issue, and the time of an operation on `operands` operands of `nbytes` each."""
        block = Elements(nbytes // ITEM_BYTES, ITEM_BYTES)
        return self.issue_ps + self.vector.elementwise_ps(function, [block] * operands, block)


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
