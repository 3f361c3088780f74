"""The kernel of the study, and the rank program that launches it."""

from collections.abc import Callable
from dataclasses import dataclass

from kernbench import tl, torch
from kernbench.studies.milestone_1h_gemm.shapes import DTYPE, ProductShape, Staging
from runtime.language.value import Array
from runtime.model.blocked_layout import blocked_row_major
from runtime.model.placement import ONE_PE
from runtime.model.tiles import TileSize


@dataclass(frozen=True)
class GemmOutcome:
    """The result of one product, and the simulated time of its kernel."""

    result: Array
    kernel_ps: int


def gemm(
    a: tl.Pointer, b: tl.Pointer, out: tl.Pointer, shape: ProductShape, staging: Staging
) -> None:
    """Kernel: out = a @ b as one composite.

    Streamed matrices lie in memory tile by tile, loaded ones row by row.
    """
    m, k, n = shape
    left = tl.load(a, (m, k)) if staging.loads_a else tl.ref(a, (m, k), blocked=True)
    right = tl.load(b, (k, n)) if staging.loads_b else tl.ref(b, (k, n), blocked=True)
    tl.wait(tl.composite("gemm", left, right, out=tl.ref(out, (m, n), blocked=True)))


def product(a: Array, b: Array, staging: Staging, tile: TileSize) -> Callable[[int], GemmOutcome]:
    """The rank program: copies operands to HBM, runs one kernel on one PE, reads the result."""
    shape = ProductShape(a.shape[0], a.shape[1], b.shape[1])

    def main(rank: int) -> GemmOutcome:
        torch.ahbm.set_device(rank)
        # The tile scheduler streams whole tiles, so a streamed matrix lies tile by tile.
        a_layout = None if staging.loads_a else blocked_row_major(tile.m, tile.k)
        b_layout = None if staging.loads_b else blocked_row_major(tile.k, tile.n)
        left = torch.from_numpy(a, dp=ONE_PE, layout=a_layout)
        right = torch.from_numpy(b, dp=ONE_PE, layout=b_layout)
        out_layout = blocked_row_major(tile.m, tile.n)
        out = torch.empty(shape.m, shape.n, dtype=DTYPE, dp=ONE_PE, layout=out_layout)
        launched = torch.launch("gemm", gemm, left, right, out, shape, staging)
        return GemmOutcome(out.numpy(), launched.pe_exec_ps)

    return main
