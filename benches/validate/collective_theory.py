"""What all-reduce must take and what its links must carry, from the numbers of a topology file and nothing of the product.

Every rank has a message of m bytes in q slots of s bytes on its way at a time; p ranks, n bytes at each of them.
"""

from math import ceil

from benches.validate.accesses import TCM_GBS, Accesses
from benches.validate.all_reduce_runs import CREDIT_BYTES, ITEM_BYTES, Link, Queues
from benches.validate.closed_form import UCIE_GBS, Way, serialised_ps
from benches.validate.ways import pe_stem


class PeToNextSip:
    """The closed forms of PE 0 of the last cube, whose queues lead to its like in the next SIP and end in TCM.

    A packet of the fabric holds a slot at least, so that a slot is copied out of its ring in one piece.
    """

    def __init__(self, accesses: Accesses, queues: Queues) -> None:
        self._queues = queues
        self.form, plan = accesses.form, accesses.plan
        at = (accesses.file.cubes - 1, plan.cube.pe(0))
        stem_out, stem_in = pe_stem(at[1])
        self._way: Way = stem_out + plan.between(at, at, 1) + stem_in
        self._to_slice, self._from_slice = plan.own_slice()
        self._slot_ps = accesses.slot_ps((0, at[0]), (1, at[0]), queues.slot_bytes, "tcm", queues.packet_bytes)
        self._issue_ps = self.form.ps("pe.cpu.overhead_ns") + self.form.ps("pe.scheduler.overhead_ns")
        self._dma_ps, self._mmu_ps = self.form.ps("pe.dma.overhead_ns"), self.form.ps("pe.mmu.overhead_ns")

    @property
    def alpha_ps(self) -> int:
        """A message without bytes, from its command to the slot being usable: issue, DMA, overheads and wires, IPCQ."""
        return self._issue_ps + self._dma_ps + self.form.latency_ps(self._way) + self.form.ps("pe.ipcq.overhead_ns")

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
        link_ps = serialised_ps([self._queues.packet_bytes] * pieces, self.form.narrowest_gbs(self._way))
        tcm_ps = self._tcm_ps(self._queues.slot_bytes)
        return max(link_ps, self._issue_ps + self._dma_ps + tcm_ps, self._issue_ps + self._copy_ps, 3 * tcm_ps)

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
        message = self._queues.ring_bytes
        added_ps, stored_ps = (sips - 1) * self._add_ps(message), sips * self._store_ps(message)
        return self._load_ps(sips * message) + 2 * (sips - 1) * self._step_ps + added_ps + stored_ps

    def ends_ps(self, sips: int) -> int:
        """The load of the first block, the copy of the last slot, the stores of the last block: no link is busy meanwhile."""
        message = self._queues.ring_bytes
        return self._load_ps(sips * message) + self._copy_ps + sips * self._store_ps(message)

    @property
    def _copy_ps(self) -> int:
        """Out of the ring and into the scratch, through one port of TCM."""
        return self._dma_ps + 2 * self._tcm_ps(self._queues.slot_bytes)

    @property
    def _step_ps(self) -> int:
        """A command, the first slot + (q - 1) slots behind it, the copy of the last."""
        return self._issue_ps + self._slot_ps + (self._queues.slots - 1) * self.between_slots_ps + self._copy_ps

    def _add_ps(self, nbytes: int) -> int:
        """A command, both operands to registers, pipeline and elements / lanes, the sum to TCM."""
        lanes, fill = self.form.number("pe.math.lanes"), self.form.number("pe.math.pipeline_cycles")
        cycles = fill + ceil(nbytes / ITEM_BYTES / lanes)
        port = self.form.number("pe.fetch_store.bw_gbs")
        moved_ps = ceil(2 * nbytes / port * 1000) + ceil(nbytes / port * 1000)
        return self._issue_ps + moved_ps + ceil(cycles / self.form.number("pe.math.clock_ghz") * 1000)

    def _load_ps(self, nbytes: int) -> int:
        there_ps, back_ps = self.form.control_ps(self._to_slice), self.form.bulk_ps(self._from_slice, nbytes, TCM_GBS)
        return self._issue_ps + self._mmu_ps + self._dma_ps + there_ps + back_ps

    def _store_ps(self, nbytes: int) -> int:
        there_ps, back_ps = self.form.bulk_ps(self._to_slice, nbytes, TCM_GBS), self.form.control_ps(self._from_slice)
        return self._issue_ps + self._mmu_ps + self._dma_ps + there_ps + back_ps

    def _tcm_ps(self, nbytes: int) -> int:
        return ceil(nbytes / self.form.number(TCM_GBS) * 1000)


def ring_loads(sips: int, elements: int, block: int, queues: Queues) -> dict[Link, int]:
    """Bytes on each link between SIPs of one ring: 2(p-1)/p n, and credits the other way.

    Blocks of `block` elements are cut into p chunks i, from i n / p to (i + 1) n / p. A rank sends every chunk but one while
    sums are made, and every chunk but one while they are passed round; where p does not divide n, it matters which.
    """
    loads = dict.fromkeys(((rank, (rank + way) % sips) for rank in range(sips) for way in (1, -1)), 0)
    for start in range(0, elements, block):
        count = min(block, elements - start)
        chunks = [((index + 1) * count // sips - index * count // sips) * ITEM_BYTES for index in range(sips)]
        for rank in range(sips):
            # Chunk r + 1 is whole on rank r and is not sent before; chunk r + 2 is the last one to come and stays.
            kept = (rank + 1) % sips, (rank + 2) % sips
            passed = [chunk for stays in kept for index, chunk in enumerate(chunks) if index != stays]
            after = (rank + 1) % sips
            loads[rank, after] += sum(passed)
            loads[after, rank] += CREDIT_BYTES * sum(ceil(each / queues.slot_bytes) for each in passed)
    return loads


def line_load(nbytes: int, queues: Queues) -> int:
    """Bytes on a link of a line that passes n bytes on in one direction and the result back in the other: n and credits."""
    return nbytes + CREDIT_BYTES * ceil(nbytes / queues.slot_bytes)
