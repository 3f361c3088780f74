"""The arithmetic of a tiled matrix product: its steps, its bytes, and the times that no engine can beat.

(m, k) times (k, n) is cut into tiles. A step of the engine multiplies one tile of each operand; an output tile takes the steps
of its depth one after the other, and every step gets both of its tiles anew. Bounds are exact fractions of a picosecond; a
service is rounded up, as the model rounds it.

The two bounds are the roofs of S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", CACM 52(4), 2009. The output-stationary array is that of A. Samajdar et al., "A systematic methodology
for characterizing scalability of DNN accelerators using SCALE-Sim", ISPASS 2020.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from kernbench.validate.variant import Variant

PS_PER_NS = 1000


class Sides(NamedTuple):
    """StridedBlock, depth and columns of a product, or of a tile of it."""

    m: int
    k: int
    n: int

    @property
    def macs(self) -> int:
        """Multiplications, each with its addition."""
        return self.m * self.k * self.n


@dataclass(frozen=True)
class GemmNumbers:
    """What a topology file says about the matrix products of a PE.

    `fetch_gbs` is one direction between TCM and registers; `shared_gbs` what reads and writes of the own HBM slice have
    together, `read_gbs` what reads have at most.
    """

    tile: Sides
    macs_per_cycle: int
    clock_ghz: Fraction
    fetch_gbs: Fraction
    shared_gbs: Fraction
    read_gbs: Fraction

    @classmethod
    def of(cls, file: Variant) -> "GemmNumbers":
        """The numbers of a file that is right."""
        slice_gbs = (
            file["hbm.num_pcs"]
            * _exact(file["hbm.pc_bw_gbs"])
            * _exact(file["cube.hbm_ctrl.efficiency"])
        )
        return cls(
            Sides(*(file[f"pe.tile.{side}"] for side in "mkn")),
            file["pe.gemm.macs_per_cycle"],
            _exact(file["pe.gemm.clock_ghz"]),
            _exact(file["pe.fetch_store.bw_gbs"]),
            min(slice_gbs, _exact(file["pe.tcm.bw_gbs"])),
            _exact(file["xbar.to_hbm_bw_gbs"]),
        )


def steps(product: Sides, tile: Sides) -> int:
    """ceil(M/m) ceil(K/k) ceil(N/n)."""
    return ceil(product.m / tile.m) * ceil(product.k / tile.k) * ceil(product.n / tile.n)


def padding_utilisation(product: Sides, tile: Sides) -> Fraction:
    """Multiplications of the product as a share of those of whole tiles: M K N / (steps m k n)."""
    return Fraction(product.macs, steps(product, tile) * tile.macs)


def compute_bound_ps(product: Sides, numbers: GemmNumbers) -> Fraction:
    """2 M N K operations at the peak of 2 macs_per_cycle clock."""
    return product.macs / (numbers.macs_per_cycle * numbers.clock_ghz) * PS_PER_NS


def memory_bound_ps(read: int, written: int, numbers: GemmNumbers) -> Fraction:
    """Bytes over bandwidth: all of them through the slice and the port of TCM, those read over the link between."""
    return max((read + written) / numbers.shared_gbs, read / numbers.read_gbs) * PS_PER_NS


def streamed_bytes(product: Sides, tile: Sides, itemsize: int) -> tuple[int, int]:
    """What the steps read of each operand: (m, k) once for every column of tiles, (k, n) once for every row of them."""
    reads_of_a, reads_of_b = ceil(product.n / tile.n), ceil(product.m / tile.m)
    return (
        reads_of_a * product.m * product.k * itemsize,
        reads_of_b * product.k * product.n * itemsize,
    )


def tile_ps(numbers: GemmNumbers) -> int:
    """One step: ceil(m k n / macs_per_cycle) cycles, rounded up to the picosecond. A tile that is not full takes as long."""
    return ceil(ceil(numbers.tile.macs / numbers.macs_per_cycle) / numbers.clock_ghz * PS_PER_NS)


def fetch_ps(numbers: GemmNumbers, itemsize: int) -> int:
    """The two operand tiles of a full step from TCM into registers, each rounded up."""
    tile = numbers.tile
    return sum(
        ceil(elements * itemsize / numbers.fetch_gbs * PS_PER_NS)
        for elements in (tile.m * tile.k, tile.k * tile.n)
    )


def store_ps(numbers: GemmNumbers, itemsize: int) -> int:
    """A full output tile from the accumulators into TCM."""
    return ceil(numbers.tile.m * numbers.tile.n * itemsize / numbers.fetch_gbs * PS_PER_NS)


def staged_ps(product: Sides, numbers: GemmNumbers, itemsize: int, result_itemsize: int) -> int:
    """Operands and result in TCM, whole tiles: steps t + fill + drain.

    Fetch, engine and store are a pipeline with two buffers between each. A step takes `t`, the longer one of its fetch and its
    compute time; the other one of the two is the fill or drain beside it. Where the store of an output tile takes longer than
    the steps of its depth, it is the stores that follow each other.
    """
    fetch, compute, store = (
        fetch_ps(numbers, itemsize),
        tile_ps(numbers),
        store_ps(numbers, result_itemsize),
    )
    depth = ceil(product.k / numbers.tile.k)
    outputs = steps(product, numbers.tile) // depth
    a_tile = depth * max(fetch, compute)
    return a_tile + min(fetch, compute) + (outputs - 1) * max(a_tile, store) + store


def systolic_cycles(product: Sides, rows: int, cols: int) -> int:
    """An output-stationary array of R rows and C columns: ceil(M/R) ceil(N/C) (K + R + C - 2).

    The farthest element gets its first operands R - 1 + C - 1 cycles after the nearest one and its last ones K - 1 after those:
    in cycle K + R + C - 3, where the first has the number 0, so K + R + C - 2 cycles have passed.
    """
    return ceil(product.m / rows) * ceil(product.n / cols) * (product.k + rows + cols - 2)


def _exact(number: float) -> Fraction:
    return Fraction(str(number))
