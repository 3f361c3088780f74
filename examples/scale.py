"""A kernel on every PE of a SIP: each PE scales its own shard.

Run it with `kernbench --sips 2 examples/scale.py`.
"""

import numpy as np

from kernbench import DPPolicy, tl, torch


def scale(x: tl.Pointer, numel: int, factor: float) -> None:
    """Kernel: multiply the `numel` elements of this PE's shard by `factor`."""
    pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    mine = x + pe * numel
    tl.store(mine, tl.load(mine, numel) * factor)


def main() -> None:
    """Spread 8192 elements over all PEs, scale and check them, and print the times of the
    launch.
    """
    dist = torch.distributed
    dist.init_process_group("ahbm")
    values = np.arange(8192, dtype=np.float32)
    x = torch.from_numpy(values, dp=DPPolicy(cube="row_wise", pe="row_wise"))
    launch = torch.launch("scale", scale, x, 8192 // len(x.shards), 0.5)
    assert np.array_equal(x.numpy(), values * np.float32(0.5))
    print(
        f"rank {dist.get_rank()}: {x}, launch {launch.total_ps / 1000} ns, "
        f"of which kernel {launch.pe_exec_ps / 1000} ns"
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
