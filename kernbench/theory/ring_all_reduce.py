"""Closed forms of the ring all-reduce and of one queue pair to the next SIP, in picoseconds.

A rank has one message of m bytes in q slots of s bytes in flight; there are p ranks with n bytes
each. The queue of PE 0 of the last cube leads to the same PE of the next SIP; its ring is in the
TCM.
"""

from math import ceil

from kernbench.theory.alpha_beta import AlphaBeta, RingQueue, all_reduce_bytes
from kernbench.theory.kernel_costs import KernelCosts
from kernbench.theory.routes import UCIE_GBS
from kernbench.theory.servers import transfer_ps
from kernbench.theory.topology_file import TopologyFile


class RingAllReduceTimes:
    """The closed forms of one topology file and one kind of queue."""

    def __init__(self, file: TopologyFile, queue: RingQueue) -> None:
        self._queue, self.costs = queue, KernelCosts(file, queue.packet_bytes)
        self._times, self._route = self.costs.times, self.costs.to_sip()
        self._slot_ps = self.costs.slot_ps(self._route, queue.slot_bytes)
        self._copy_ps = self.costs.copy_ps(queue.slot_bytes)
        self.link = AlphaBeta(self.costs.alpha_ps(self._route), file.number(UCIE_GBS))
        """alpha of a message to the next SIP, and B of the link between SIPs."""

    @property
    def round_trip_ps(self) -> int:
        """A slot and its credit: DMA, route, bytes, IPCQ; copy; route of the credit, IPCQ."""
        return self._slot_ps + self._copy_ps + self._times.announcement_ps(self._route)

    @property
    def slot_interval_ps(self) -> int:
        """Time between two slots of a stream: that of its slowest stage.

        The stages are the narrowest link, the command of the sender, the command of the receiver,
        and the receiver's TCM. A slot passes the port of that TCM three times: into the ring, out
        of the ring, into the scratch buffer.
        """
        queue, costs = self._queue, self.costs
        # The packets of a slot follow each other without gaps; each is rounded up on its own.
        packets = ceil(queue.slot_bytes / queue.packet_bytes)
        packet_ps = transfer_ps(queue.packet_bytes, self._times.narrowest_gbs(self._route))
        sender_ps = costs.send_ps(queue.slot_bytes)
        receiver_ps = costs.issue_ps + self._copy_ps
        return max(packets * packet_ps, sender_ps, receiver_ps, 3 * costs.tcm_ps(queue.slot_bytes))

    @property
    def slots_for_a_stream(self) -> int:
        """Slots with which no stream waits for credits: Little's law, plus one for the command."""
        # A command takes a free slot when it starts, which is one slot more than those in flight.
        return ceil(self.round_trip_ps / self.slot_interval_ps) + 1

    def rate_gbs(self) -> float:
        """min(B, C s / RTT): a ring of C slots of s bytes; B is one slot per `slot_interval_ps`."""
        slots, nbytes = self._queue.slots, self._queue.slot_bytes
        return min(
            nbytes * 1000 / self.slot_interval_ps, slots * nbytes * 1000 / self.round_trip_ps
        )

    def alpha_beta_ps(self, sips: int, nbytes: int) -> float:
        """2(p-1) alpha + 2(p-1)/p n/B for n bytes per SIP."""
        return float(self.link.ring_all_reduce_ps(sips, nbytes))

    def link_ps(self, sips: int, nbytes: int) -> float:
        """2(p-1)/p n/B: the bytes that a rank sends, over the link to the next SIP."""
        return float(self.link.bytes_ps(all_reduce_bytes(sips, nbytes)))

    def block_ps(self, sips: int) -> int:
        """Load + 2(p-1) step + (p-1) add + p store: a block of p messages with one PE per SIP.

        The PE executes one command after the other. Load and stores access the own slice. A step
        sends one message and receives one, which is added in the first half of the steps. No step
        waits for a credit if the ring has `slots_for_a_stream` slots.
        """
        message, costs = self._queue.ring_bytes, self.costs
        # A step: one command, the first slot and q - 1 slots behind it, the copy of the last slot.
        stream_ps = self._slot_ps + (self._queue.slots - 1) * self.slot_interval_ps
        step_ps = costs.issue_ps + stream_ps + self._copy_ps
        added_ps, stored_ps = (sips - 1) * costs.add_ps(message), sips * costs.store_ps(message)
        return costs.load_ps(sips * message) + 2 * (sips - 1) * step_ps + added_ps + stored_ps

    def ends_ps(self, sips: int) -> int:
        """gamma: load of the first block, copy of the last slot, stores of the last block.

        No link between SIPs is busy during this time.
        """
        message, costs = self._queue.ring_bytes, self.costs
        return costs.load_ps(sips * message) + self._copy_ps + sips * costs.store_ps(message)
