"""Data-parallel training ported from PyTorch: every rank has its own rows, gradients are averaged.

    kernbench --sips 4 examples/linear_regression.py --steps 5

The PyTorch original and what changes in a port: docs/porting.md.
"""

import argparse

import numpy as np

from kernbench import tl, torch

dist = torch.distributed
ROWS, COLUMNS, RATE = 64, 16, 0.25


def gradient_kernel(x: tl.Pointer, y: tl.Pointer, w: tl.Pointer, gradient: tl.Pointer) -> None:
    """Kernel: gradient = x.T @ (x @ w - y) / ROWS."""
    samples = tl.load(x, (ROWS, COLUMNS))
    error = tl.dot(samples, tl.load(w, (COLUMNS, 1))) - tl.load(y, (ROWS, 1))
    tl.store(gradient, tl.dot(tl.trans(samples), error) * (1 / ROWS))


def update_kernel(w: tl.Pointer, gradient: tl.Pointer) -> None:
    """Kernel: w = w - RATE * gradient."""
    tl.store(w, tl.fma(tl.load(gradient, COLUMNS), -RATE, tl.load(w, COLUMNS)))


def train(steps: int) -> None:
    """Run `steps` steps of gradient descent; report the loss and the simulated time of a step."""
    dist.init_process_group("ahbm")
    rank = dist.get_rank()
    truth = np.random.default_rng(0).normal(size=(COLUMNS, 1))
    samples = np.random.default_rng(1 + rank).normal(size=(ROWS, COLUMNS))
    x = torch.from_numpy(samples.astype(np.float32))
    y = torch.from_numpy((samples @ truth).astype(np.float32))
    w, gradient = torch.zeros(COLUMNS, 1), torch.empty(COLUMNS, 1)
    # The copies are commands, too; they are not timed.
    torch.ahbm.synchronize()
    for step in range(steps):
        start_ps = torch.ahbm.elapsed_ps()
        torch.launch("gradient", gradient_kernel, x, y, w, gradient)
        dist.all_reduce(gradient, op=dist.ReduceOp.AVG)
        torch.launch("update", update_kernel, w, gradient)
        torch.ahbm.synchronize()
        step_ns = (torch.ahbm.elapsed_ps() - start_ps) / 1000
        # The host computes on a copy: reading a tensor takes simulated time, so it is not timed.
        loss = float(np.mean((samples @ w.numpy() - samples @ truth) ** 2))
        print(f"rank {rank}: step {step}, loss {loss:.5f}, {step_ns:,.3f} ns")
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3, help="steps of gradient descent [3]")
    train(parser.parse_args().steps)
