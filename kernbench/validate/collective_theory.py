"""What a ring all-reduce must take, from the numbers of a topology file and nothing of the product.

Every rank has a message of m bytes in q slots of s bytes on its way at a time; p ranks, n bytes at each of them.
"""

from math import ceil

from kernbench.validate.accesses import Accesses
from kernbench.validate.all_reduce_runs import Queues
from kernbench.validate.closed_form import UCIE_GBS, serialised_ps
from kernbench.validate.kernel_costs import KernelCosts


class PeToNextSip:
    """The closed forms of PE 0 of the last cube, whose queues lead to its like in the next SIP and end in TCM."""

    def __init__(self, accesses: Accesses, queues: Queues) -> None:
        self._queues, self.costs = queues, KernelCosts(accesses, queues.packet_bytes)
        self.form, self._way = accesses.form, self.costs.to_sip()
        self._slot_ps = self.costs.slot_ps(self._way, queues.slot_bytes)
        self._copy_ps = self.costs.copy_ps(queues.slot_bytes)

    @property
    def alpha_ps(self) -> int:
        """A message without bytes, from its command to the slot being usable: issue, DMA, overheads and wires, IPCQ."""
        return self.costs.alpha_ps(self._way)

    @property
    def round_ps(self) -> int:
        """A slot and its credit: DMA, way, bytes and IPCQ, the copy out of the ring, the way home of the credit and IPCQ."""
        return self._slot_ps + self._copy_ps + self.form.announcement_ps(self._way)

    @property
    def between_slots_ps(self) -> int:
        """The slowest part that a stream of slots passes: the narrowest link, the sender's command, the receiver's, its TCM.

        A slot passes the port of the receiver's TCM three times: into the ring, out of it, into the scratch.
        """
        pieces = ceil(self._queues.slot_bytes / self._queues.packet_bytes)
        link_ps = serialised_ps(
            [self._queues.packet_bytes] * pieces, self.form.narrowest_gbs(self._way)
        )
        sent_ps, received_ps = (
            self.costs.sent_ps(self._queues.slot_bytes),
            self.costs.issue_ps + self._copy_ps,
        )
        return max(link_ps, sent_ps, received_ps, 3 * self.costs.tcm_ps(self._queues.slot_bytes))

    @property
    def slots_for_a_stream(self) -> int:
        """Slots with which credits never hold up a stream, by Little's law, and one more for the command that waits."""
        return ceil(self.round_ps / self.between_slots_ps) + 1

    def rate_gbs(self) -> float:
        """min(B, C s / round) of the ring of C slots of s bytes, B being one slot after the other."""
        slots, nbytes = self._queues.slots, self._queues.slot_bytes
        return min(nbytes * 1000 / self.between_slots_ps, slots * nbytes * 1000 / self.round_ps)

    def alpha_beta_ps(self, sips: int, nbytes: int) -> float:
        """2(p-1) alpha + 2(p-1)/p n/B, of n bytes a SIP."""
        return 2 * (sips - 1) * self.alpha_ps + self.wire_ps(sips, nbytes)

    def wire_ps(self, sips: int, nbytes: int) -> float:
        """2(p-1)/p n/B: what every rank must send, over its link to the next SIP."""
        return float(2 * (sips - 1) * nbytes / sips * 1000 / self.form.number(UCIE_GBS))

    def block_ps(self, sips: int) -> int:
        """A block of p messages on one PE a SIP, which does one thing after the other.

        load + 2(p-1) step + (p-1) add + p store: load and stores are of the own slice, a step sends a message and takes the one
        that comes in, of which the first half are added. No step waits for a credit if the ring has `slots_for_a_stream`.
        """
        message, costs = self._queues.ring_bytes, self.costs
        added_ps, stored_ps = (sips - 1) * costs.add_ps(message), sips * costs.store_ps(message)
        return costs.load_ps(sips * message) + 2 * (sips - 1) * self._step_ps + added_ps + stored_ps

    def ends_ps(self, sips: int) -> int:
        """The load of the first block, the copy of the last slot, the stores of the last block: no link is busy meanwhile."""
        message, costs = self._queues.ring_bytes, self.costs
        return costs.load_ps(sips * message) + self._copy_ps + sips * costs.store_ps(message)

    @property
    def _step_ps(self) -> int:
        """A command, the first slot + (q - 1) slots behind it, the copy of the last."""
        stream_ps = self._slot_ps + (self._queues.slots - 1) * self.between_slots_ps
        return self.costs.issue_ps + stream_ps + self._copy_ps
