"""The sum of two vectors, bound by the HBM bandwidth: loads and stores of blocks overlap.

kernbench --sips 1 examples/kernels/vector_add.py                       # one PE
kernbench --sips 1 examples/kernels/vector_add.py --cubes 16 --pes 8    # all PEs of a SIP
"""

import argparse

import numpy as np

from kernbench import DPPolicy, PeRoofline, tl, torch

BLOCK = 16384
"""Elements of a block."""
BUFFERS = 3
"""Blocks in TCM: one is added, its predecessor is stored, its successor is loaded."""


def vector_add(x: tl.Pointer, y: tl.Pointer, out: tl.Pointer, count: int) -> None:
    """Kernel: out = x + y for the `count` elements of this PE; whole blocks only.

    A load over a buffer waits for the commands that use it.
    """
    start = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * count
    blocks = range(start, start + count, BLOCK)
    loads = [
        (tl.load_async(x + first, BLOCK), tl.load_async(y + first, BLOCK)) for first in blocks[:2]
    ]
    for number, first in enumerate(blocks):
        left, right = (load.wait() for load in loads[number])
        tl.store_async(out + first, tl.fused(tl.add, left, right, out=left))
        ahead = number + BUFFERS - 1
        if ahead < len(blocks):
            old = loads[ahead - BUFFERS] if ahead >= BUFFERS else None
            over = (None, None) if old is None else [load.wait() for load in old]
            loads.append(
                tuple(
                    tl.load_async(operand + blocks[ahead], BLOCK, out=buffer)
                    for operand, buffer in zip((x, y), over, strict=True)
                )
            )


def run(cubes: int = 1, pes: int = 1, count: int = 262144) -> None:
    """Give every PE `count` elements of float16, run the kernel, and compare with numpy."""
    if count % BLOCK:
        raise ValueError(f"{count} elements a PE: a multiple of {BLOCK}, which are a block")
    rank, device = torch.ahbm.current_device(), torch.ahbm.get_device_properties()
    placement = DPPolicy(cube="row_wise", pe="row_wise", num_cubes=cubes, num_pes=pes)
    draw, size = np.random.default_rng(rank).standard_normal, cubes * pes * count
    x, y = (draw(size, np.float32).astype(np.float16) for _ in range(2))

    out = torch.empty(size, dtype=torch.float16, dp=placement)
    on_device = (torch.from_numpy(x, dp=placement), torch.from_numpy(y, dp=placement))
    launch = torch.launch("vector_add", vector_add, *on_device, out, count)

    exact = x.astype(np.float64) + y.astype(np.float64)
    # One rounding to float16.
    np.testing.assert_allclose(out.numpy(), exact, rtol=2**-11, atol=2**-25)
    roofline = PeRoofline.of(device, hbm_bytes=3 * count * x.itemsize, vectors={"add": count})
    verdict = "equal to float64" if torch.ahbm.has_data() else "not checked"
    print(
        f"rank {rank}: vector add of {count:,} float16 a PE, PEs: {cubes * pes}, {verdict}, "
        f"{roofline.beside(launch.pe_exec_ps / 1000)}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cubes", type=int, default=1, help="cubes of a SIP that take part [1]")
    parser.add_argument("--pes", type=int, default=1, help="PEs of each of them [1]")
    parser.add_argument("--count", type=int, default=262144, help="elements of each PE [262144]")
    run(**vars(parser.parse_args()))
