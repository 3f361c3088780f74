"""What the commands of a kernel on PE 0 of a cube take while nothing else moves, from the numbers of a topology file."""

from math import ceil

from kernbench.validate.accesses import TCM_GBS, Accesses
from kernbench.validate.all_reduce_runs import ITEM_BYTES
from kernbench.validate.closed_form import Way, serialised_ps
from kernbench.validate.ways import Stem, pe_stem


class KernelCosts:
    """Times of single commands and messages in ps. Operands are int32; a slot moves in packets of `packet_bytes`.

    A packet of the fabric holds a slot at least, so that a slot is copied out of its ring in one piece.
    """

    def __init__(self, accesses: Accesses, packet_bytes: int) -> None:
        self.form, self._plan, self._packet_bytes = accesses.form, accesses.plan, packet_bytes
        self.cubes, self.pes = accesses.file.cubes, accesses.file.pes_per_cube
        self.issue_ps = self.form.ps("pe.cpu.overhead_ns") + self.form.ps(
            "pe.scheduler.overhead_ns"
        )
        self.dma_ps, self._mmu_ps = (
            self.form.ps("pe.dma.overhead_ns"),
            self.form.ps("pe.mmu.overhead_ns"),
        )
        self._to_slice, self._from_slice = self._plan.own_slice()

    def to_sip(self, remaining_hops: int = 1) -> Way:
        """From PE 0 of the last cube to its like, so many SIPs away."""
        here = self.cubes - 1, self._plan.cube.pe(0)
        return self._between(here, here, remaining_hops)

    def to_cube(self, cube: int, other: int) -> Way:
        """From PE 0 of a cube to its like in another one of the same SIP."""
        pe = self._plan.cube.pe(0)
        return self._between((cube, pe), (other, pe))

    def to_pe(self, pe: int, other: int) -> Way:
        """From a PE to another one of its cube."""
        return self._between((0, self._plan.cube.pe(pe)), (0, self._plan.cube.pe(other)))

    def alpha_ps(self, way: Way) -> int:
        """A message without bytes, from its command to the slot being usable: issue, DMA, overheads and wires, IPCQ."""
        return (
            self.issue_ps
            + self.dma_ps
            + self.form.latency_ps(way)
            + self.form.ps("pe.ipcq.overhead_ns")
        )

    def message_ps(self, way: Way, nbytes: int) -> int:
        """The same with bytes: alpha + n/B."""
        return self.issue_ps + self.slot_ps(way, nbytes)

    def slot_ps(self, way: Way, nbytes: int) -> int:
        """From the DMA channel to the slot being usable."""
        return self.form.ring_write_ps(
            way, nbytes, self._packet_bytes, TCM_GBS
        ) + self.form.announcement_ps(())

    def passed_on_ps(self, remaining_hops: int, nbytes: int) -> int:
        """A message to the rank so many SIPs ahead on a ring where all ranks send at once.

        It takes alpha + n/B, and for every SIP that forwards it what n/B is longer than a crossing: a link sends the message of
        its own SIP first, then the one that comes by.
        """
        way = self.to_sip(remaining_hops)
        bytes_ps = serialised_ps([nbytes], self.form.narrowest_gbs(way))
        crossing_ps = self.form.latency_ps(self.to_sip(2)) - self.form.latency_ps(self.to_sip(1))
        return self.message_ps(way, nbytes) + (remaining_hops - 1) * max(bytes_ps - crossing_ps, 0)

    def sent_ps(self, nbytes: int) -> int:
        """A command that sends a slot, until the next command: the slot has left TCM then."""
        return self.issue_ps + self.dma_ps + self.tcm_ps(nbytes)

    def copy_ps(self, nbytes: int) -> int:
        """A slot out of its ring and into the scratch, through one port of TCM."""
        return self.dma_ps + 2 * self.tcm_ps(nbytes)

    def add_ps(self, nbytes: int) -> int:
        """A command, both operands to registers, pipeline and elements / lanes, the sum to TCM."""
        return self._math_ps(2 * nbytes, nbytes)

    def join_ps(self, nbytes: int) -> int:
        """The same with one operand in pieces: put together to so many bytes."""
        return self._math_ps(nbytes, nbytes)

    def load_ps(self, nbytes: int) -> int:
        """A command, MMU, DMA, the request to the own slice, the bytes back."""
        there_ps, back_ps = (
            self.form.control_ps(self._to_slice),
            self.form.bulk_ps(self._from_slice, nbytes, TCM_GBS),
        )
        return self.issue_ps + self._mmu_ps + self.dma_ps + there_ps + back_ps

    def store_ps(self, nbytes: int) -> int:
        """A command, MMU, DMA, the bytes to the own slice, the acknowledgement back."""
        there_ps, back_ps = (
            self.form.bulk_ps(self._to_slice, nbytes, TCM_GBS),
            self.form.control_ps(self._from_slice),
        )
        return self.issue_ps + self._mmu_ps + self.dma_ps + there_ps + back_ps

    def tcm_ps(self, nbytes: int) -> int:
        """Once through the port of TCM."""
        return ceil(nbytes / self.form.number(TCM_GBS) * 1000)

    def _math_ps(self, read_bytes: int, written_bytes: int) -> int:
        lanes, fill = self.form.number("pe.math.lanes"), self.form.number("pe.math.pipeline_cycles")
        cycles = fill + ceil(written_bytes / ITEM_BYTES / lanes)
        port = self.form.number("pe.fetch_store.bw_gbs")
        moved_ps = ceil(read_bytes / port * 1000) + ceil(written_bytes / port * 1000)
        return (
            self.issue_ps + moved_ps + ceil(cycles / self.form.number("pe.math.clock_ghz") * 1000)
        )

    def _between(
        self, source: tuple[int, Stem], target: tuple[int, Stem], remaining_hops: int = 0
    ) -> Way:
        return (
            pe_stem(source[1])[0]
            + self._plan.between(source, target, remaining_hops)
            + pe_stem(target[1])[1]
        )
