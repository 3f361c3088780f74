"""Matrix times vector, y = W x, with the rows of W divided over PEs: bound by the HBM bandwidth.

    kernbench --sips 1 examples/kernels/gemv.py                      # one PE
    kernbench --sips 1 examples/kernels/gemv.py --cubes 16 --pes 8   # all PEs of a SIP

The vector is loaded once. The matrix is streamed as a blocked matrix: each tile is contiguous in
memory, so that its bursts are spread over all channels of the HBM slice.
"""

import argparse

import numpy as np

from kernbench import DPPolicy, PeRoofline, tl, torch


def gemv(w: tl.Pointer, x: tl.Pointer, y: tl.Pointer, rows: int, columns: int) -> None:
    """Kernel: the `rows` elements of y = W x whose rows of W this PE holds."""
    pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    vector = tl.load(x, (columns, 1))
    matrix = tl.ref(w + pe * rows * columns, (rows, columns), blocked=True)
    tl.composite("gemm", matrix, vector, tl.ref(y + pe * rows, (rows, 1)))


def run(cubes: int = 1, pes: int = 1, rows: int = 1024, columns: int = 2048) -> None:
    """Give every PE `rows` rows of float16, run the kernel, and compare with numpy in float64."""
    rank, device = torch.ahbm.current_device(), torch.ahbm.get_device_properties()
    count = cubes * pes
    by_rows = DPPolicy(cube="row_wise", pe="row_wise", num_cubes=cubes, num_pes=pes)
    everywhere = DPPolicy(num_cubes=cubes, num_pes=pes)
    draw, tile = np.random.default_rng(rank).standard_normal, device.gemm_tile
    w = draw((count * rows, columns), np.float32).astype(np.float16)
    x = draw(columns, np.float32).astype(np.float16)

    blocked = torch.blocked_row_major(tile.m, tile.k)
    y = torch.empty(count * rows, dtype=torch.float16, dp=by_rows)
    launch = torch.launch(
        "gemv",
        gemv,
        torch.from_numpy(w, dp=by_rows, layout=blocked),
        torch.from_numpy(x, dp=everywhere),
        y,
        rows,
        columns,
    )

    exact = w.astype(np.float64) @ x.astype(np.float64)
    # One rounding to float16, and sums of `columns` products in float32.
    np.testing.assert_allclose(y.numpy(), exact, rtol=2**-10, atol=1e-7 * columns)
    roofline = PeRoofline.of(
        device, macs=rows * columns, hbm_bytes=(rows * columns + columns + rows) * w.itemsize
    )
    verdict = "equal to float64" if torch.ahbm.has_data() else "not checked"
    print(
        f"rank {rank}: gemv of {w.shape} float16, PEs: {count}, {verdict}, "
        f"{roofline.beside(launch.pe_exec_ps / 1000)}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cubes", type=int, default=1, help="cubes of a SIP that take part [1]")
    parser.add_argument("--pes", type=int, default=1, help="PEs of each of them [1]")
    parser.add_argument("--rows", type=int, default=1024, help="rows of each PE [1024]")
    parser.add_argument("--columns", type=int, default=2048, help="columns [2048]")
    run(**vars(parser.parse_args()))
