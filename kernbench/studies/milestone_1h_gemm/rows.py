"""The points of the study, its rows, and the content of `gemm_sweep.json`."""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.milestone_1h_gemm.theory import (
    GemmBounds,
    GemmHardware,
    ProductShape,
    Staging,
)
from kernbench.studies.parameter_study import TopologyText
from kernbench.studies.study_results import StudyResults, below_bound
from runtime.core.errors import UsageError


class GemmPoint(NamedTuple):
    """One product with one staging of its operands; `topology` is a topology file with one SIP."""

    topology: str
    hardware: GemmHardware
    shape: ProductShape
    staging: Staging

    @property
    def cost(self) -> int:
        """Steps of the GEMM engine: the number of simulated events grows with them."""
        return self.shape.plan(self.hardware.tile).tiles

    def __str__(self) -> str:
        return f"{self.shape} {self.staging}"


def plan_points(topology: TopologyText, shapes: Iterable[ProductShape]) -> tuple[GemmPoint, ...]:
    """All points on a topology file.

    Raises `ConfigError` for an invalid file, and `UsageError` if loaded operands do not fit in the
    kernel's scratch.
    """
    hardware = GemmHardware.of(topology.parsed)
    one_sip = TopologyFile.of(topology.text).on_a_ring(1).text
    points = tuple(
        GemmPoint(topology=one_sip, hardware=hardware, shape=shape, staging=staging)
        for shape in shapes
        for staging in Staging
    )
    # Before the first simulation, which would fail only when it reaches the load.
    for point in points:
        _check_scratch(point)
    return points


def _check_scratch(point: GemmPoint) -> None:
    needed, present = point.staging.loaded_bytes(point.shape), point.hardware.kernel_scratch_bytes
    if needed > present:
        raise UsageError(
            f"--shapes: {point} loads {needed:,} bytes of operands, but kernel scratch is "
            f"{present:,} bytes (pe.tcm.kernel_scratch_mb of the topology file)"
        )


class StageBusy(Struct, frozen=True, forbid_unknown_fields=True):
    """Busy time of each stage, in picoseconds.

    An engine serves one tile at a time. The DMA, in either direction, is busy while at least one
    transfer is in flight.
    """

    dma_in_ps: int
    fetch_ps: int
    gemm_ps: int
    store_ps: int
    dma_out_ps: int


class StageRecords(Struct, frozen=True, forbid_unknown_fields=True):
    """Number of records of each stage in the op log."""

    dma_in: int
    fetch: int
    gemm: int
    store: int
    dma_out: int


class GemmStalls(Struct, frozen=True, forbid_unknown_fields=True):
    """Time the GEMM engine waited, in picoseconds.

    `dma_ps`: until operands were in TCM; `fetch_ps`: for the fetch port; `store_ps`: for a free
    accumulator.
    """

    dma_ps: int
    fetch_ps: int
    store_ps: int


class GemmRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One product with one staging of its operands: what was measured, and its bounds.

    `kernel_ps` is the simulated time of the kernel, `load_ps` the part of it that loads operands
    before the product. `utilisation` is the share of the peak in the whole kernel,
    `product_utilisation` in the product alone; `padding_utilisation` is the limit of both. `ratio`
    is `kernel_ps` over the bound, `error` the largest difference from float64 as a share of what
    rounding allows.
    """

    shape: ProductShape
    staging: Staging
    dtype: str
    steps: int
    under_tile: bool
    kernel_ps: int
    load_ps: int
    busy: StageBusy
    records: StageRecords
    stalls: GemmStalls
    utilisation: float
    product_utilisation: float
    padding_utilisation: float
    theory: GemmBounds
    ratio: float
    error: float

    @property
    def label(self) -> str:
        """Shape and staging."""
        return f"{self.shape} {self.staging}"

    @property
    def time_ps(self) -> int:
        """The simulated time of the kernel."""
        return self.kernel_ps

    @property
    def faults(self) -> list[str]:
        """A wrong result, a time below the bound, a utilisation above the limit."""
        faults = list[str]()
        # Not `error > 1`: a NaN in the result gives a NaN here, which is a fault.
        if not self.error <= 1:
            faults.append(f"wrong result: {self.error:.3g} times what rounding allows")
        faults += below_bound(self.kernel_ps, self.theory.bound_ps)
        if self.product_utilisation > self.padding_utilisation:
            faults.append(
                f"{self.product_utilisation:.2%} of the peak, "
                f"padding allows {self.padding_utilisation:.2%}"
            )
        return faults


class GemmResults(StudyResults[GemmRow], frozen=True, forbid_unknown_fields=True):
    """All rows, and the hardware they were measured on."""

    hardware: GemmHardware
