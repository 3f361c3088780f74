"""Steps, bytes and times of a tiled matrix product on one PE.

(M, K) x (K, N) is cut into tiles. One step of the GEMM engine multiplies one tile of each operand.
The steps of an output tile along K follow each other, and each step fetches both its tiles: no
reuse. Bounds are exact fractions of a picosecond; service times are rounded up, as in the
simulator. The output-stationary array is that of A. Samajdar et al., "A systematic methodology for
characterizing scalability of DNN accelerators using SCALE-Sim", ISPASS 2020.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from kernbench.oracle.theory import roofline
from kernbench.oracle.theory.bandwidths import own_memory_gbs
from kernbench.oracle.theory.servers import transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile


class GemmShape(NamedTuple):
    """M, K and N of a product or of a tile of it."""

    m: int
    k: int
    n: int

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations."""
        return self.m * self.k * self.n


@dataclass(frozen=True)
class GemmNumbers:
    """The numbers of a topology file which determine the matrix products of a PE.

    `fetch_gbs` is one direction between TCM and registers. `memory_gbs` is shared by reads from and
    writes to the own HBM slice; `link_gbs` limits each of the two directions.
    """

    tile: GemmShape
    macs_per_cycle: int
    clock_ghz: Fraction
    fetch_gbs: Fraction
    memory_gbs: Fraction
    link_gbs: Fraction

    @classmethod
    def of(cls, file: TopologyFile) -> "GemmNumbers":
        """The numbers of a valid file whose GEMM engine has the model `macs`."""
        return cls(
            tile=GemmShape(*(file[f"pe.tile.{side}"] for side in "mkn")),
            macs_per_cycle=file["pe.gemm.macs_per_cycle"],
            clock_ghz=file.number("pe.gemm.clock_ghz"),
            fetch_gbs=file.number("pe.fetch_store.bw_gbs"),
            memory_gbs=own_memory_gbs(file),
            link_gbs=file.number("xbar.to_hbm_bw_gbs"),
        )

    def compute_bound_ps(self, product: GemmShape) -> Fraction:
        """2 M N K operations at the peak of 2 macs_per_cycle x clock."""
        return roofline.compute_bound_ps(product.macs, self.macs_per_cycle, self.clock_ghz)

    def memory_bound_ps(self, read: int, written: int) -> Fraction:
        """Bytes over bandwidth of the own slice."""
        return roofline.memory_bound_ps(read, written, self.memory_gbs, self.link_gbs)

    def tile_ps(self) -> int:
        """The time of a step: ceil(m k n / macs_per_cycle) cycles, also for a partial tile."""
        cycles = tiled_cycles(self.tile, self.tile, self.macs_per_cycle)
        return ceil(roofline.cycles_ps(cycles, self.clock_ghz))

    def fetch_ps(self, itemsize: int) -> int:
        """The two operand tiles of a full step from the TCM to the registers."""
        a_elements, b_elements = self.tile.m * self.tile.k, self.tile.k * self.tile.n
        return sum(
            transfer_ps(each * itemsize, self.fetch_gbs) for each in (a_elements, b_elements)
        )

    def store_ps(self, itemsize: int) -> int:
        """A full output tile from the accumulators to the TCM."""
        return transfer_ps(self.tile.m * self.tile.n * itemsize, self.fetch_gbs)

    def staged_ps(self, product: GemmShape, itemsize: int, result_itemsize: int) -> int:
        """Steps t + fill + drain: operands and result in the TCM, whole tiles.

        Fetch, engine and store form a pipeline with two buffers between the stages. A step takes
        `t`, the longer of its fetch and its compute time; the shorter one of them is the fill.
        Where the store of an output tile takes longer than the steps along K, the stores set the
        pace.
        """
        fetch, compute, store = (
            self.fetch_ps(itemsize),
            self.tile_ps(),
            self.store_ps(result_itemsize),
        )
        # Two accumulators: the store of an output tile overlaps with the steps of the next one.
        depth = ceil(product.k / self.tile.k)
        outputs = steps(product, self.tile) // depth
        output_tile = depth * max(fetch, compute)
        return output_tile + min(fetch, compute) + (outputs - 1) * max(output_tile, store) + store


def steps(product: GemmShape, tile: GemmShape) -> int:
    """ceil(M/m) ceil(K/k) ceil(N/n)."""
    return ceil(product.m / tile.m) * ceil(product.k / tile.k) * ceil(product.n / tile.n)


def padding_utilisation(product: GemmShape, tile: GemmShape) -> Fraction:
    """M K N / (steps m k n): useful operations over those of whole tiles."""
    return Fraction(product.macs, steps(product, tile) * tile.macs)


def streamed_bytes(product: GemmShape, tile: GemmShape, itemsize: int) -> tuple[int, int]:
    """Bytes that the steps read of each operand.

    (M, K) is read once per column of output tiles, (K, N) once per row of them.
    """
    reads_of_a, reads_of_b = ceil(product.n / tile.n), ceil(product.m / tile.m)
    a_bytes, b_bytes = product.m * product.k * itemsize, product.k * product.n * itemsize
    return reads_of_a * a_bytes, reads_of_b * b_bytes


def tiled_cycles(product: GemmShape, tile: GemmShape, macs_per_cycle: int) -> int:
    """Cycles of all steps in an engine of the model `macs`: a partial tile takes those of a full
    one.
    """
    return steps(product, tile) * ceil(Fraction(tile.macs, macs_per_cycle))


def step_ps(file: TopologyFile, size: GemmShape, *, last: bool) -> int:
    """The time of a step on a tile of this size, `last` for the last one of an output tile."""
    numbers = GemmNumbers.of(file)
    if file["pe.gemm.model"] == "macs":
        return numbers.tile_ps()
    rows, cols = file["pe.gemm.rows"], file["pe.gemm.cols"]
    # The wave front of a step leaves the array during the next one along K.
    drain = rows + cols - 2 if last else 0
    # A cell adds one product in each of K cycles; `drain` is the skew of the last cell.
    cycles = array_passes(size, size, rows, cols) * (size.k + drain)
    return ceil(roofline.cycles_ps(cycles, numbers.clock_ghz))


def array_passes(product: GemmShape, tile: GemmShape, rows: int, cols: int) -> int:
    """Passes of an output-stationary array of R rows and C columns: one for each R x C outputs of
    a tile.
    """
    return _passes(product.m, tile.m, rows) * _passes(product.n, tile.n, cols)


def _passes(length: int, tile: int, array: int) -> int:
    """Passes along one side."""
    # The array starts anew for each tile: tiles that the array does not divide leave cells idle.
    full, rest = divmod(length, tile)
    return full * ceil(tile / array) + ceil(rest / array)


def systolic_cycles(product: GemmShape, rows: int, cols: int, tile: GemmShape | None = None) -> int:
    """ceil(M/R) ceil(N/C) (K + R + C - 2): an output-stationary array of R rows and C columns, to
    which the outputs of a `tile` come together, by default all.

    The farthest cell receives its first operands R - 1 + C - 1 cycles after the nearest cell, and
    its last operands K - 1 cycles later: in cycle K + R + C - 3, if the first has number 0. So K +
    R + C - 2 cycles have passed.
    """
    return array_passes(product, tile or product, rows, cols) * (product.k + rows + cols - 2)
