"""What the PE runs, and the rank program around it."""

from collections.abc import Callable
from dataclasses import dataclass

from kernbench.studies.milestone_1h_gemm.shapes import DTYPE, Shape, Staging
from runtime import tl, torch
from runtime.language.value import Array
from runtime.model.tiles import TileSize
from runtime.model.tiling import tiled_row_major


@dataclass(frozen=True)
class Product:
    """The result of one product, and how long its kernel ran."""

    result: Array
    kernel_ps: int


def gemm(a: tl.Pointer, b: tl.Pointer, out: tl.Pointer, shape: Shape, staging: Staging) -> None:
    """Kernel: out = a @ b, one composite. What is streamed lies in memory tile by tile, what is loaded row by row."""
    m, k, n = shape
    left = tl.load(a, (m, k)) if staging.loads_a else tl.ref(a, (m, k), blocked=True)
    right = tl.load(b, (k, n)) if staging.loads_b else tl.ref(b, (k, n), blocked=True)
    tl.wait(tl.composite("gemm", left, right, out=tl.ref(out, (m, n), blocked=True)))


def product(a: Array, b: Array, staging: Staging, tile: TileSize) -> Callable[[int], Product]:
    """The rank program: operands to HBM, one kernel on one PE, the result back."""
    shape = Shape(a.shape[0], a.shape[1], b.shape[1])

    def main(rank: int) -> Product:
        torch.ahbm.set_device(rank)
        left = torch.from_numpy(
            a, layout=None if staging.loads_a else tiled_row_major(tile.m, tile.k)
        )
        right = torch.from_numpy(
            b, layout=None if staging.loads_b else tiled_row_major(tile.k, tile.n)
        )
        out = torch.empty(shape.m, shape.n, dtype=DTYPE, layout=tiled_row_major(tile.m, tile.n))
        done = torch.launch("gemm", gemm, left, right, out, shape, staging)
        return Product(out.numpy(), done.pe_exec_ps)

    return main
