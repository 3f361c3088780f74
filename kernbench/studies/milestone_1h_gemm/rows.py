"""What the study keeps: a row for each point, and all of them as `gemm_sweep.json`."""

from pathlib import Path

from msgspec import Struct

from kernbench.studies import sweep_file
from kernbench.studies.milestone_1h_gemm.shapes import Shape, Staging
from kernbench.studies.milestone_1h_gemm.theory import Hardware, Theory
from runtime.core.errors import UsageError

VERSION = 1
"""Of the form of the file."""


class Busy(Struct, frozen=True, forbid_unknown_fields=True):
    """How long each stage was at work, in picoseconds.

    An engine serves one tile at a time. The DMA is at work, to TCM or from it, while at least one transfer is on its way.
    """

    dma_in_ps: int
    fetch_ps: int
    gemm_ps: int
    store_ps: int
    dma_out_ps: int


class Records(Struct, frozen=True, forbid_unknown_fields=True):
    """How many records each stage left in the op log."""

    dma_in: int
    fetch: int
    gemm: int
    store: int
    dma_out: int


class Stalls(Struct, frozen=True, forbid_unknown_fields=True):
    """How long the GEMM engine waited, in picoseconds: for operands to be in TCM, for the fetch port, for an accumulator."""

    dma_ps: int
    fetch_ps: int
    store_ps: int


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """One point: a shape, the staging of its operands, what was measured and what the theory says.

    `kernel_ps` is the simulated time of the kernel, `load_ps` the part of it in which operands were loaded, before the product.
    `utilisation` is the share of the peak in the whole kernel, `product_utilisation` in the product alone; the limit of both is
    `padding_utilisation`. `ratio` is `kernel_ps` over the bound, `error` the largest difference from float64, as a share of
    what rounding allows.
    """

    shape: Shape
    staging: Staging
    dtype: str
    steps: int
    under_tile: bool
    kernel_ps: int
    load_ps: int
    busy: Busy
    records: Records
    stalls: Stalls
    utilisation: float
    product_utilisation: float
    padding_utilisation: float
    theory: Theory
    ratio: float
    error: float

    @property
    def faults(self) -> list[str]:
        """What cannot be: a wrong result, a time below its bound, more than the peak."""
        found: list[str] = []
        if not self.error <= 1:
            found.append(f"wrong result: {self.error:.3g} times what rounding allows")
        if self.kernel_ps < self.theory.bound_ps:
            found.append(
                f"{self.kernel_ps:,} ps are less than the bound of {self.theory.bound_ps:,} ps"
            )
        if self.product_utilisation > self.padding_utilisation:
            found.append(
                f"{self.product_utilisation:.2%} of the peak, padding allows {self.padding_utilisation:.2%}"
            )
        return found


class Sweep(Struct, frozen=True, forbid_unknown_fields=True):
    """All rows, and what they were measured on."""

    version: int
    topology: str
    topology_hash: str
    hardware: Hardware
    rows: tuple[Row, ...]


def read_sweep(path: Path) -> Sweep:
    """The sweep in a file; raises `UsageError` that says what is wrong with it."""
    sweep = sweep_file.read(path, Sweep, VERSION)
    points = [(row.shape, row.staging) for row in sweep.rows]
    if not points or set(points) != {
        (shape, staging) for shape, _ in points for staging in Staging
    }:
        raise UsageError(f"{path}: there must be a row for every shape in every staging")
    return sweep
