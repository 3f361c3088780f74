"""Doubles a vector on the eight PEs of a cube; its operand lies where `--on` puts it.

kernbench --sips 1 examples/placement.py              # all of it in the HBM slice of PE 0
kernbench --sips 1 examples/placement.py --on all     # each PE's part in its own slice
"""

import argparse

import numpy as np

from kernbench import DPPolicy, tl, torch

PES = 8
BLOCK = 4096
"""Elements of a block."""
COUNT = 65536
"""Elements of each PE."""


def double(x: tl.Pointer, out: tl.Pointer, count: int) -> None:
    """Kernel: out = 2 x for the `count` elements of this PE, block by block."""
    start = tl.program_id(0) * count
    for first in range(start, start + count, BLOCK):
        with tl.scratch():
            values = tl.load(x + first, BLOCK)
            tl.store(out + first, values + values)


def run(on: str) -> None:
    """Place the operand, run the kernel, and compare with numpy."""
    pes = {"one": 1, "all": PES}[on]
    x = np.arange(PES * COUNT, dtype=np.float32)
    operand = torch.from_numpy(x, dp=DPPolicy(pe="row_wise", num_cubes=1, num_pes=pes))
    out = torch.empty(x.size, dtype=torch.float32, dp=DPPolicy(pe="row_wise", num_cubes=1))
    launch = torch.launch("double", double, operand, out, COUNT)
    np.testing.assert_array_equal(out.numpy(), 2 * x)
    print(f"twice {x.size:,} numbers on {PES} PEs: {launch.pe_exec_ps / 1000:,.1f} ns")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--on", choices=["one", "all"], default="one", help="PEs that hold it")
    run(parser.parse_args().on)
