"""Training with tensor parallel layers as in Megatron, with the backward pass written by hand.

The model is y = relu(x @ w1) @ w2, with the columns of w1 and the rows of w2 divided over the ranks
of a tensor parallel group; the groups are data parallel and have inputs of their own. The forward
pass adds up y over the group, the backward pass dx; the gradients of the weights are averaged over
the data parallel ranks. Run it with

    kernbench --sips 4 examples/tensor_parallel.py            # one group of four ranks
    kernbench --sips 4 examples/tensor_parallel.py --size 2   # two groups of two
"""

import argparse
from typing import Any

import numpy as np

from kernbench import torch, tp

dist = torch.distributed
TOKENS, WIDTH, HIDDEN, RATE = 48, 96, 384, 0.125
Array = np.ndarray[Any, np.dtype[Any]]


def run(size: int | None = None, steps: int = 2) -> None:
    """Run some steps of gradient descent; compare weights and dx with numpy in float64."""
    dist.init_process_group("ahbm")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tp.initialize_model_parallel(ranks if size is None else size)
    group, groups = tp.get_data_parallel_rank(), tp.get_data_parallel_world_size()
    w1, w2 = _drawn(0, WIDTH, HIDDEN), _drawn(1, HIDDEN, WIDTH)
    inputs = [_drawn(2 + each, TOKENS, WIDTH) for each in range(2 * groups)]
    x, target = (torch.from_numpy(each) for each in inputs[2 * group : 2 * group + 2])

    first = tp.ColumnParallelLinear(WIDTH, HIDDEN, dtype=torch.float32)
    second = tp.RowParallelLinear(HIDDEN, WIDTH, dtype=torch.float32)
    width = HIDDEN // tp.get_tensor_model_parallel_world_size()
    start = tp.get_tensor_model_parallel_rank() * width
    own = slice(start, start + width)
    first.weight.copy_(w1[:, own])
    second.weight.copy_(w2[own])
    started_ps = torch.ahbm.elapsed_ps()
    dx = x
    for _ in range(steps):
        dx = step(first, second, x, target)
    torch.ahbm.synchronize()
    time_ps = torch.ahbm.elapsed_ps() - started_ps

    results = (first.weight.numpy(), second.weight.numpy(), dx.numpy())
    if torch.ahbm.has_data():
        w1, w2, of_x = _expected(w1, w2, inputs, group, steps)
        for each, exact in zip(results, (w1[:, own], w2[own], of_x), strict=True):
            # Sums of up to 384 products in float32, in a few steps.
            np.testing.assert_allclose(each, exact, rtol=1e-4, atol=1e-5)
    verdict = "equal to float64" if torch.ahbm.has_data() else "not checked"
    print(
        f"rank {rank}: {steps} steps, {groups} x {ranks // groups} ranks, weights and dx "
        f"{verdict}, {time_ps / 1000:,.3f} ns"
    )
    tp.destroy_model_parallel()
    dist.destroy_process_group()


def step(
    first: tp.ColumnParallelLinear,
    second: tp.RowParallelLinear,
    x: torch.Tensor,
    target: torch.Tensor,
) -> torch.Tensor:
    """Forward, backward and update for the loss |y - target|^2 / (2 TOKENS); returns dx."""
    hidden = torch.relu(first(x))
    y = second(hidden)

    dy = (y - target) * (1 / TOKENS)
    # y is a sum over the ranks: its gradient is the same on each of them (reduce backward: copy).
    dw2 = torch.matmul(hidden, dy, transpose_input=True, dp=second.weight.policy)
    dhidden = torch.matmul(dy, second.weight, transpose_other=True) * (hidden > 0)
    dw1 = torch.matmul(x, dhidden, transpose_input=True, dp=first.weight.policy)
    # Every rank has used x: the gradients of all uses are added up (copy backward: reduce).
    dx = tp.reduce_from_tp_region(torch.matmul(dhidden, first.weight, transpose_other=True))

    for weight, gradient in ((first.weight, dw1), (second.weight, dw2)):
        dist.all_reduce(gradient, dist.ReduceOp.AVG, group=tp.get_data_parallel_group())
        weight.sub_(gradient * RATE)
    return dx


def _drawn(seed: int, rows: int, columns: int) -> Array:
    """Values equal on every rank; a sum of products over the rows is near 1."""
    values = np.random.default_rng(seed).standard_normal((rows, columns)) / np.sqrt(rows)
    return values.astype(np.float32)


def _expected(
    w1: Array, w2: Array, inputs: list[Array], group: int, steps: int
) -> tuple[Array, Array, Array]:
    """The weights after all steps, and dx of a group in the last one."""
    w1, w2 = w1.astype(np.float64), w2.astype(np.float64)
    of_x = list[Array]()
    for _ in range(steps):
        gradients = list[tuple[Array, Array]]()
        of_x = list[Array]()
        for x, target in zip(inputs[::2], inputs[1::2], strict=True):
            hidden = np.maximum(x @ w1, 0)
            dy = (hidden @ w2 - target) / TOKENS
            dhidden = dy @ w2.T * (hidden > 0)
            gradients.append((x.T @ dhidden, hidden.T @ dy))
            of_x.append(dhidden @ w1.T)
        w1 = w1 - RATE * np.mean([first for first, _ in gradients], axis=0)
        w2 = w2 - RATE * np.mean([second for _, second in gradients], axis=0)
    return w1, w2, of_x[group]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, help="ranks of a tensor parallel group [all]")
    parser.add_argument("--steps", type=int, default=2)
    run(**vars(parser.parse_args()))
