"""Training with weights sharded over the ranks, as in ZeRO and FSDP: all-gather the weights,
reduce-scatter the gradients.

Every rank has its own rows of the weights and its own data. A step gathers all weights, computes
the gradient of |W - data|^2 / 2 on every rank, averages it with each rank receiving its own rows,
and updates those rows. Run it with

    kernbench --sips 4 examples/sharded_sgd.py --pes 2
"""

import argparse

import numpy as np

from kernbench import DPPolicy, tl, torch

dist = torch.distributed
COLUMNS, ROWS, RATE = 512, 4, 0.25


def subtract(x: tl.Pointer, y: tl.Pointer, z: tl.Pointer, numel: int, factor: float) -> None:
    """Kernel: z = x - factor * y, for the `numel` elements that this PE holds."""
    start = tl.program_id(0) * numel
    tl.store(z + start, tl.fma(tl.load(y + start, numel), -factor, tl.load(x + start, numel)))


def run(pes: int = 1, steps: int = 3) -> None:
    """Run some steps of gradient descent and compare this rank's rows with numpy in float64."""
    dist.init_process_group("ahbm", algorithm="ring")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    whole, part = (ranks * ROWS, COLUMNS), (ROWS, COLUMNS)
    columns = DPPolicy(pe="column_wise", num_cubes=1, num_pes=pes)
    data = [
        np.random.default_rng(seed).normal(size=whole).astype(np.float32) for seed in range(ranks)
    ]

    target = torch.from_numpy(data[rank], dp=columns)
    weights, gradient = torch.empty(whole, dp=columns), torch.empty(whole, dp=columns)
    own, own_gradient = torch.zeros(part, dp=columns), torch.empty(part, dp=columns)
    # The copies are commands, too; they are not timed.
    torch.ahbm.synchronize()
    began_ps = torch.ahbm.elapsed_ps()
    for _ in range(steps):
        dist.all_gather_into_tensor(weights, own)
        torch.launch("gradient", subtract, weights, target, gradient, weights.numel() // pes, 1.0)
        dist.reduce_scatter_tensor(own_gradient, gradient, dist.ReduceOp.AVG)
        torch.launch("update", subtract, own, own_gradient, own, own.numel() // pes, RATE)
    torch.ahbm.synchronize()
    elapsed_ps = torch.ahbm.elapsed_ps() - began_ps

    mean = np.mean(data, axis=0, dtype=np.float64)[rank * ROWS : (rank + 1) * ROWS]
    # Each step covers a quarter of the remaining distance to the mean of all data, with a few
    # roundings to float32.
    expected = mean * (1 - (1 - RATE) ** steps)
    np.testing.assert_allclose(
        own.numpy(), expected, rtol=0, atol=8 * steps * float(np.finfo(np.float32).eps)
    )
    verdict = "right" if torch.ahbm.has_data() else "not checked"
    print(
        f"rank {rank}: {steps} steps, {whole} float32 over {ranks} ranks, {verdict}, "
        f"{elapsed_ps / 1000 / steps:,.3f} ns a step"
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pes", type=int, default=1, help="PEs of cube 0 that take part [1]")
    parser.add_argument("--steps", type=int, default=3, help="steps [3]")
    run(**vars(parser.parse_args()))
