"""The bench `atomic-sums`: sums by atomic operations on each SIP; it prints their bits."""

import hashlib

import numpy as np

from kernbench import BenchOutcome, DPPolicy, bench, torch


@bench("atomic-sums", "sums of floats by atomic operations of sixteen PEs")
def atomic_sums(rank: int) -> BenchOutcome:
    """Each rank prints the bits of its own sums."""
    # Triton is imported in the processes of the ranks alone.
    from tests.triton.kernels_atomics import sum_kernel

    torch.ahbm.set_device(rank)
    x = np.random.default_rng(rank).standard_normal(512).astype(np.float32)
    alone = DPPolicy(num_cubes=1, num_pes=1)
    out = torch.from_numpy(np.zeros(8, np.float32), dp=alone)
    count = torch.from_numpy(np.zeros(1, np.int32), dp=alone)
    rows = DPPolicy(cube="row_wise", pe="row_wise", num_cubes=2)
    torch.launch("sums", sum_kernel, torch.from_numpy(x, dp=rows), out, count, grid=(16,), BLOCK=32)
    bits = hashlib.sha256(out.numpy().tobytes()).hexdigest()[:16]
    print(f"= rank {rank}: {bits}, programs: {count.numpy()[0]}")
    return BenchOutcome("atomic-sums", 1, 0)
