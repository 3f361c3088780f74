"""Closed forms of the ring all-reduce and of one queue pair to the next SIP, in picoseconds.

A rank has one message of m bytes in q slots of s bytes in flight; there are p ranks with n bytes
each. The queue of PE 0 of the last cube leads to the same PE of the next SIP; its ring is in the
TCM.
"""

from math import ceil

from kernbench.oracle.theory.alpha_beta import AlphaBeta, RingQueue, all_reduce_bytes
from kernbench.oracle.theory.bandwidths import slice_gbs
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.paths.routes import UCIE_GBS
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.servers import transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile


class RingAllReduceTimes:
    """The closed forms of one topology file and one kind of queue."""

    def __init__(self, file: TopologyFile, queue: RingQueue) -> None:
        self._queue, self.costs = queue, KernelCosts(file, queue.packet_bytes)
        self._times, self._route = self.costs.times, self.costs.to_sip()
        self._slot_ps = self.costs.slot_ps(self._route, queue.slot_bytes)
        self._copy_ps = self.costs.copy_ps(queue.slot_bytes)
        self._slice_gbs = slice_gbs(file)
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

    def rate_gbs(self) -> float:
        """min(B, C s / RTT): a ring of C slots of s bytes; B is one slot per `slot_interval_ps`."""
        slots, nbytes = self._queue.slots, self._queue.slot_bytes
        # A credit loop has at most C slots in flight in a round trip: credit-based flow control in
        # W. Dally, B. Towles, Principles and Practices of Interconnection Networks, 2004.
        return min(
            nbytes * 1000 / self.slot_interval_ps, slots * nbytes * 1000 / self.round_trip_ps
        )

    def alpha_beta_ps(self, sips: int, nbytes: int, pes: int) -> float:
        """2(p-1) alpha + max(2(p-1)/p n/B, 2 n/M): n bytes per SIP on `pes` PEs with a slice each.

        alpha is a message without bytes to the next SIP, B the link between SIPs, M the bandwidth
        of the slices together. Every byte is read from memory once and written once; the links and
        the slices work at the same time, so the busier one counts.
        """
        steps_ps = 2 * (sips - 1) * self.link.alpha_ps
        memory_ps = float(bytes_ps(2 * nbytes, pes * self._slice_gbs))
        return float(steps_ps) + max(self.link_ps(sips, nbytes), memory_ps)

    def link_ps(self, sips: int, nbytes: int) -> float:
        """2(p-1)/p n/B: the bytes that a rank sends, over the link to the next SIP."""
        return float(self.link.bytes_ps(all_reduce_bytes(sips, nbytes)))
