"""Softmax of the rows of a matrix, with the rows divided over PEs.

Run it on any number of PEs:

    kernbench --sips 2 examples/softmax.py                      # all PEs of two SIPs
    kernbench --sips 1 examples/softmax.py --cubes 1 --pes 1    # one PE
"""

import argparse

import numpy as np

from kernbench import DPPolicy, tl, torch

BLOCK = 16
"""Rows per block: a block and the values computed from it must fit the scratch of a kernel."""


def softmax(x: tl.Pointer, y: tl.Pointer, rows: int, columns: int) -> None:
    """Kernel: the softmax of each of the `rows` rows that this PE holds."""
    pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    for row in range(0, rows, BLOCK):
        block = (min(BLOCK, rows - row), columns)
        start = (pe * rows + row) * columns
        with tl.scratch():
            scores = tl.load(x + start, block).to(tl.float32)
            powers = tl.exp(scores - tl.max(scores, axis=1, keep_dims=True))
            shares = powers / tl.sum(powers, axis=1, keep_dims=True)
            tl.store(y + start, shares.to(y.dtype))


def run(
    cubes: int | None = None, pes: int | None = None, rows: int = 20, columns: int = 256
) -> None:
    """Give every PE `rows` rows of float16, run the kernel, and compare with numpy in float64."""
    rank, device = torch.ahbm.current_device(), torch.ahbm.get_device_properties()
    count = (cubes or device.cubes) * (pes or device.pes_per_cube)
    placement = DPPolicy(cube="row_wise", pe="row_wise", num_cubes=cubes, num_pes=pes)
    values = np.random.default_rng(rank).normal(size=(count * rows, columns)).astype(np.float16)

    x = torch.from_numpy(values, dp=placement)
    y = torch.empty(values.shape, dtype=torch.float16, dp=placement)
    launch = torch.launch("softmax", softmax, x, y, rows, columns)

    powers = np.exp(values.astype(np.float64))
    expected = powers / powers.sum(axis=1, keepdims=True)
    # One rounding to float16; the rounding errors of float32 are far smaller.
    np.testing.assert_allclose(y.numpy(), expected, rtol=float(np.finfo(np.float16).eps), atol=1e-7)
    verdict = "right to one rounding" if torch.ahbm.has_data() else "not checked"
    print(
        f"rank {rank}: softmax of {values.shape} float16, PEs: {count}, {verdict}, "
        f"{launch.pe_exec_ps / 1000:,.3f} ns"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cubes", type=int, help="cubes of a SIP that take part [all]")
    parser.add_argument("--pes", type=int, help="PEs of each of them [all]")
    run(**vars(parser.parse_args()))
