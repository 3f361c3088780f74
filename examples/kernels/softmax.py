"""Softmax of the rows of a matrix, bound by the vector engine.

    kernbench --sips 1 examples/kernels/softmax.py                       # one PE
    kernbench --sips 1 examples/kernels/softmax.py --cubes 16 --pes 8    # all PEs of a SIP

The first chain makes two passes over a block, the maxima and the powers, and stores the powers; the
second one multiplies them by the reciprocals of their sums.
"""

import argparse

import numpy as np

from kernbench import DPPolicy, PeRoofline, tl, torch

BLOCK = 64
"""Rows of a block."""
BUFFERS = 3
"""Blocks in TCM: one is computed, its predecessor is stored, its successor is loaded."""


def softmax(x: tl.Pointer, y: tl.Pointer, rows: int, columns: int) -> None:
    """Kernel: exp(x - max) / sum(exp(x - max)) of each row of this PE."""
    pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    starts = range(pe * rows * columns, (pe + 1) * rows * columns, BLOCK * columns)
    loads = [tl.load_async(x + start, (BLOCK, columns)) for start in starts[: BUFFERS - 1]]
    for number, start in enumerate(starts):
        block = loads[number].wait()
        with tl.scratch():
            tl.fused(shares, *tl.fused(powers, block), out=block)
        tl.store_async(y + start, block)
        ahead = number + BUFFERS - 1
        if ahead < len(starts):
            # Over the block that was stored last; the load waits for the store.
            old = loads[ahead - BUFFERS].wait() if ahead >= BUFFERS else None
            loads.append(tl.load_async(x + starts[ahead], (BLOCK, columns), out=old))


def powers(x: tl.Value) -> tuple[tl.Value, tl.Value]:
    """The powers in float32, and the reciprocal of the sum of each row."""
    greatest = tl.max(x, axis=1, keep_dims=True).to(tl.float32)
    power = tl.exp(x.to(tl.float32) - greatest)
    return power, 1 / tl.sum(power, axis=1, keep_dims=True)


def shares(power: tl.Value, reciprocal: tl.Value) -> tl.Value:
    """The elements of the result, rounded once."""
    return (power * reciprocal).to(tl.float16)


def run(cubes: int = 1, pes: int = 1, rows: int = 256, columns: int = 1024) -> None:
    """Give every PE `rows` rows of float16, run the kernel, and compare with numpy in float64."""
    if rows % BLOCK:
        raise ValueError(f"{rows} rows a PE: a multiple of {BLOCK}, which are a block")
    rank, device = torch.ahbm.current_device(), torch.ahbm.get_device_properties()
    by_rows = DPPolicy(cube="row_wise", pe="row_wise", num_cubes=cubes, num_pes=pes)
    shape = cubes * pes * rows, columns
    x = np.random.default_rng(rank).standard_normal(shape, np.float32).astype(np.float16)

    y = torch.empty(*shape, dtype=torch.float16, dp=by_rows)
    launch = torch.launch("softmax", softmax, torch.from_numpy(x, dp=by_rows), y, rows, columns)

    exact = np.exp(x.astype(np.float64))
    exact /= exact.sum(axis=1, keepdims=True)
    # One rounding to float16; its least numbers are 2^-24 apart.
    np.testing.assert_allclose(y.numpy(), exact, rtol=2**-10, atol=2**-24)
    elements = rows * columns
    roofline = PeRoofline.of(
        device,
        hbm_bytes=2 * elements * x.itemsize,
        vectors={
            "max": elements,
            # To float32 and back.
            "cast": 2 * elements,
            "sub": elements,
            "exp": elements,
            "sum": elements,
            "mul": elements,
        },
    )
    verdict = "equal to float64" if torch.ahbm.has_data() else "not checked"
    print(
        f"rank {rank}: softmax of {shape} float16, PEs: {cubes * pes}, {verdict}, "
        f"{roofline.beside(launch.pe_exec_ps / 1000)}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cubes", type=int, default=1, help="cubes of a SIP that take part [1]")
    parser.add_argument("--pes", type=int, default=1, help="PEs of each of them [1]")
    parser.add_argument("--rows", type=int, default=256, help="rows of each PE [256]")
    parser.add_argument("--columns", type=int, default=1024, help="columns [1024]")
    run(**vars(parser.parse_args()))
