"""Layer normalisation of the rows of a matrix, bound by the vector engine.

    kernbench --sips 1 examples/kernels/layer_norm.py                       # one PE
    kernbench --sips 1 examples/kernels/layer_norm.py --cubes 16 --pes 8    # all PEs of a SIP

Three chains, of one pass each, go over a block: the mean, the variance, the normalised elements.
What is between two operations of a chain stays in registers. The first chain also stores the block
in float32, so that the others need not convert it again.
"""

import argparse

import numpy as np

from kernbench import DPPolicy, PeRoofline, tl, torch

BLOCK = 32
"""Rows of a block."""
BUFFERS = 3
"""Blocks in TCM: one is normalised, its predecessor is stored, its successor is loaded."""
EPSILON = 1e-5


def layer_norm(
    x: tl.Pointer, weight: tl.Pointer, bias: tl.Pointer, y: tl.Pointer, rows: int, columns: int
) -> None:
    """Kernel: (x - mean) / sqrt(variance + epsilon) * weight + bias of each row of this PE."""
    pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    starts = range(pe * rows * columns, (pe + 1) * rows * columns, BLOCK * columns)
    scale, shift = (tl.load(each, (1, columns)).to(tl.float32) for each in (weight, bias))
    loads = [tl.load_async(x + start, (BLOCK, columns)) for start in starts[: BUFFERS - 1]]
    for number, start in enumerate(starts):
        block = loads[number].wait()
        with tl.scratch():
            wide, mean = tl.fused(widened, block)
            reciprocal = tl.fused(reciprocal_deviation, wide, mean)
            tl.fused(normalised, wide, mean, reciprocal, scale, shift, out=block)
        tl.store_async(y + start, block)
        ahead = number + BUFFERS - 1
        if ahead < len(starts):
            # Over the block that was stored last; the load waits for the store.
            old = loads[ahead - BUFFERS].wait() if ahead >= BUFFERS else None
            loads.append(tl.load_async(x + starts[ahead], (BLOCK, columns), out=old))


def widened(x: tl.Value) -> tuple[tl.Value, tl.Value]:
    """The elements in float32, and the mean of each row."""
    wide = x.to(tl.float32)
    return wide, tl.sum(wide, axis=1, keep_dims=True) / x.shape[1]


def reciprocal_deviation(wide: tl.Value, mean: tl.Value) -> tl.Value:
    """The reciprocal of the standard deviation of each row."""
    distance = wide - mean
    variance = tl.sum(distance * distance, axis=1, keep_dims=True) / wide.shape[1]
    return tl.rsqrt(variance + EPSILON)


def normalised(
    wide: tl.Value, mean: tl.Value, reciprocal: tl.Value, scale: tl.Value, shift: tl.Value
) -> tl.Value:
    """The elements of the result, rounded once."""
    return tl.fma((wide - mean) * reciprocal, scale, shift).to(tl.float16)


def run(cubes: int = 1, pes: int = 1, rows: int = 256, columns: int = 1024) -> None:
    """Give every PE `rows` rows of float16, run the kernel, and compare with numpy in float64."""
    if rows % BLOCK:
        raise ValueError(f"{rows} rows a PE: a multiple of {BLOCK}, which are a block")
    rank, device = torch.ahbm.current_device(), torch.ahbm.get_device_properties()
    of_pes = {"num_cubes": cubes, "num_pes": pes}
    by_rows = DPPolicy(cube="row_wise", pe="row_wise", **of_pes)
    draw = np.random.default_rng(rank).standard_normal
    x, weight, bias = (
        draw(size, np.float32).astype(np.float16)
        for size in ((cubes * pes * rows, columns), columns, columns)
    )

    y = torch.empty(*x.shape, dtype=torch.float16, dp=by_rows)
    on_device = (
        torch.from_numpy(x, dp=by_rows),
        torch.from_numpy(weight, dp=DPPolicy(**of_pes)),
        torch.from_numpy(bias, dp=DPPolicy(**of_pes)),
    )
    launch = torch.launch("layer_norm", layer_norm, *on_device, y, rows, columns)

    wide = x.astype(np.float64)
    distance = wide - wide.mean(axis=1, keepdims=True)
    variance = (distance**2).mean(axis=1, keepdims=True)
    exact = distance / np.sqrt(variance + EPSILON) * weight + bias
    # One rounding to float16, and the roundings of float32 of numbers up to 4.
    np.testing.assert_allclose(y.numpy(), exact, rtol=2**-10, atol=1e-5)
    elements = rows * columns
    roofline = PeRoofline.of(
        device,
        hbm_bytes=2 * elements * x.itemsize,
        vectors={
            # To float32 and back.
            "cast": 2 * elements,
            "sum": 2 * elements,
            "sub": 2 * elements,
            # The squares, and the products with the reciprocals.
            "mul": 2 * elements,
            "fma": elements,
        },
    )
    verdict = "equal to float64" if torch.ahbm.has_data() else "not checked"
    print(
        f"rank {rank}: layer norm of {x.shape} float16, PEs: {cubes * pes}, {verdict}, "
        f"{roofline.beside(launch.pe_exec_ps / 1000)}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cubes", type=int, default=1, help="cubes of a SIP that take part [1]")
    parser.add_argument("--pes", type=int, default=1, help="PEs of each of them [1]")
    parser.add_argument("--rows", type=int, default=256, help="rows of each PE [256]")
    parser.add_argument("--columns", type=int, default=1024, help="columns [1024]")
    run(**vars(parser.parse_args()))
