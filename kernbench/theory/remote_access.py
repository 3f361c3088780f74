"""Times of loads and stores of a kernel on any PE in the HBM slice of any other, on an idle SIP."""

from kernbench.theory.floor_plan import FloorPlan, pe_stem, slice_stem
from kernbench.theory.kernel_costs import KernelCosts
from kernbench.theory.routes import TCM_GBS, Route
from kernbench.theory.topology_file import TopologyFile
from kernbench.theory.transfers import RouteTimes

CubePe = tuple[int, int]


class RemoteAccess:
    """The accesses of one topology file; PEs and the owners of slices are (cube, PE)."""

    def __init__(self, file: TopologyFile) -> None:
        self._times, self._plan = RouteTimes(file), FloorPlan(file)
        costs = KernelCosts(file, file["packet_bytes"])
        self._dma_ps = costs.dma_ps
        self._command_ps = costs.issue_ps + file.ps("pe.mmu.overhead_ns") + costs.dma_ps

    def load_ps(self, pe: CubePe, owner: CubePe, nbytes: int) -> int:
        """Command, MMU and DMA; the request to the slice; the bytes back to the TCM."""
        return self._command_ps + self._times.read_ps(*self.routes(pe, owner), nbytes, TCM_GBS)

    def dma_ps(self, pe: CubePe, owner: CubePe, nbytes: int) -> int:
        """A load from the channel of the DMA on, as the scheduler loads tiles."""
        return self._dma_ps + self._times.read_ps(*self.routes(pe, owner), nbytes, TCM_GBS)

    def store_ps(self, pe: CubePe, owner: CubePe, nbytes: int) -> int:
        """Command, MMU and DMA; the bytes to the slice; the acknowledgement back."""
        there, back = self.routes(pe, owner)
        sent_ps = self._times.bulk_ps(there, nbytes, TCM_GBS)
        return self._command_ps + sent_ps + self._times.control_ps(back)

    def routes(self, pe: CubePe, owner: CubePe) -> tuple[Route, Route]:
        """From a PE to a slice, and back."""
        if pe == owner:
            return self._plan.own_slice()
        cube = self._plan.cube
        stem, slice_router = cube.pe(pe[1]), cube.pe(owner[1])
        (out, into), (slice_out, slice_in) = pe_stem(stem), slice_stem()
        here, there = (pe[0], stem), (owner[0], slice_router)
        return (
            out + self._plan.between(here, there) + slice_in,
            slice_out + self._plan.between(there, here) + into,
        )
