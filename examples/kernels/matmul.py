"""A matrix product in blocks: loads of the next operands run beside the products of these.

    kernbench --sips 1 examples/kernels/matmul.py                            # 512³ on one PE
    kernbench --sips 1 examples/kernels/matmul.py --cubes 16 --pes 8 --size 2048

Every PE computes one part of the result: the rows of its cube times the columns of its place in the
cube. `a` is divided over cubes by rows, and every PE of a cube has a copy of them; `b` is divided
over the PEs of a cube by columns, and every cube has a copy. So every PE loads from its own HBM
slice only.
"""

import argparse
from typing import NamedTuple

import numpy as np

from kernbench import DPPolicy, PeRoofline, tl, torch

PANEL = 32
"""Rows of a panel of `a` and columns of a panel of `b`: a tile of the GEMM engine."""
BUFFERS = 3
"""Panels of `b` in TCM: one in use, one complete, one on its way."""


class Part(NamedTuple):
    """The part of one PE: (rows, depth) elements of a times (depth, columns) of b."""

    rows: int
    depth: int
    columns: int


def matmul(a: tl.Pointer, b: tl.Pointer, out: tl.Pointer, part: Part) -> None:
    """Kernel: out = a @ b of one PE.

    The panels of `a` stay in TCM, those of `b` pass through a ring of buffers. Every panel is
    contiguous in memory, and so is every tile of `out`.
    """
    rows, depth, columns = part
    pe, cube = tl.program_id(0), tl.program_id(1)
    a, b = a + cube * rows * depth, b + pe * depth * columns
    out += (cube * tl.num_programs(0) + pe) * rows * columns
    across, down = columns // PANEL, rows // PANEL

    held = [tl.load_async(a + i * PANEL * depth, (PANEL, depth)) for i in range(min(2, down))]
    right = [tl.load_async(b, (depth, PANEL))]
    for j in range(across):
        panel = right[j].wait()
        for i in range(down):
            left = held[i].wait()
            # The next panels arrive while this product runs. One load at a time has all of the
            # bandwidth, so the first product begins early.
            if j == 0 and i + 2 < down:
                held.append(tl.load_async(a + (i + 2) * PANEL * depth, (PANEL, depth)))
            tile = tl.ref(out + (i * across + j) * PANEL * PANEL, (PANEL, PANEL))
            tl.composite("gemm", left, panel, tile)
        if j + 1 < across:
            # Over the oldest panel; the load waits for the products that read it.
            old = right[j + 1 - BUFFERS].wait() if j + 1 >= BUFFERS else None
            start = b + (j + 1) * PANEL * depth
            right.append(tl.load_async(start, (depth, PANEL), out=old))


def run(cubes: int = 1, pes: int = 1, size: int = 512) -> None:
    """Multiply matrices of float16, and compare with numpy in float64."""
    rank, device = torch.ahbm.current_device(), torch.ahbm.get_device_properties()
    part = Part(rows=size // cubes, depth=size, columns=size // pes)
    draw = np.random.default_rng(rank).standard_normal
    a, b = (draw((size, size), np.float32).astype(np.float16) for _ in range(2))
    of_pes = {"num_cubes": cubes, "num_pes": pes}
    by_both = DPPolicy(cube="row_wise", pe="column_wise", **of_pes)
    tiles = torch.blocked_row_major(PANEL, PANEL)
    out = torch.empty(size, size, dtype=torch.float16, dp=by_both, layout=tiles)
    launch = torch.launch(
        "matmul",
        matmul,
        torch.from_numpy(
            a,
            dp=DPPolicy(cube="row_wise", pe="replicate", **of_pes),
        ),
        torch.from_numpy(
            b,
            dp=DPPolicy(cube="replicate", pe="column_wise", **of_pes),
            layout=torch.blocked_row_major(size, PANEL),
        ),
        out,
        part,
    )
    result = out.numpy()
    if torch.ahbm.has_data():
        exact = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(result, exact, rtol=2**-10, atol=1e-7 * size)
    roofline = PeRoofline.of(
        device,
        macs=part.rows * part.depth * part.columns,
        hbm_bytes=(part.rows * part.depth + part.depth * part.columns + part.rows * part.columns)
        * a.itemsize,
    )
    verdict = "equal to float64" if torch.ahbm.has_data() else "not checked"
    print(
        f"rank {rank}: {size}³ of float16, PEs: {cubes * pes}, {verdict}, "
        f"{roofline.beside(launch.pe_exec_ps / 1000)}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cubes", type=int, default=1, help="cubes of a SIP that take part [1]")
    parser.add_argument("--pes", type=int, default=1, help="PEs of each of them [1]")
    parser.add_argument("--size", type=int, default=512, help="rows and columns [512]")
    run(**vars(parser.parse_args()))
