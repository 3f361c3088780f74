"""A two-layer perceptron cut over the ranks as in Megatron-LM, forward and backward.

The first weight is cut by columns and the second by rows, so that one all-reduce of the outputs is
all the communication of a forward pass, and one all-reduce of the input's gradient that of a
backward pass. The result is compared with the uncut network in float64. Lines with a comment
"PyTorch:" are those that differ from the same program for PyTorch; the comment holds the original
line.

    kernbench --sips 4 examples/pytorch_megatron_mlp.py
"""

import numpy as np

import runtime.torch.distributed as dist  # PyTorch: import torch.distributed as dist
from kernbench import torch  # PyTorch: import torch

BATCH, MODEL, HIDDEN = 16, 32, 128


def forward(x, w1, w2):
    """The output of the layer on every rank, and the activation that the backward pass needs."""
    hidden = torch.relu(x @ w1)
    out = hidden @ w2
    dist.all_reduce(out)
    return out, hidden


def backward(x, hidden, w1, w2, out_gradient):
    """The gradients of the input and of this rank's parts of the weights."""
    w2_gradient = hidden.t() @ out_gradient
    hidden_gradient = (out_gradient @ w2.t()) * (hidden > 0).to(torch.float32)
    w1_gradient = x.t() @ hidden_gradient
    x_gradient = hidden_gradient @ w1.t()
    dist.all_reduce(x_gradient)
    return x_gradient, w1_gradient, w2_gradient


def main():
    """One forward and one backward pass."""
    dist.init_process_group("ahbm")  # PyTorch: dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    rng = np.random.default_rng(0)
    full_x, full_w1, full_w2, full_gradient = (
        rng.normal(size=shape).astype(np.float32) / 8
        for shape in ((BATCH, MODEL), (MODEL, HIDDEN), (HIDDEN, MODEL), (BATCH, MODEL))
    )
    part = slice(rank * HIDDEN // ranks, (rank + 1) * HIDDEN // ranks)
    x, out_gradient = torch.from_numpy(full_x), torch.from_numpy(full_gradient)
    w1 = torch.from_numpy(np.ascontiguousarray(full_w1[:, part]))
    w2 = torch.from_numpy(np.ascontiguousarray(full_w2[part]))

    out, hidden = forward(x, w1, w2)
    x_gradient, w1_gradient, w2_gradient = backward(x, hidden, w1, w2, out_gradient)

    x64, w1_64, w2_64, g64 = (
        each.astype(np.float64) for each in (full_x, full_w1, full_w2, full_gradient)
    )
    hidden64 = np.maximum(x64 @ w1_64, 0)
    hidden_g64 = (g64 @ w2_64.T) * (hidden64 > 0)
    for result, expected in (
        (out, hidden64 @ w2_64),
        (x_gradient, hidden_g64 @ w1_64.T),
        (w1_gradient, (x64.T @ hidden_g64)[:, part]),
        (w2_gradient, (hidden64.T @ g64)[part]),
    ):
        np.testing.assert_allclose(result.numpy(), expected, rtol=0, atol=2e-6)
    if rank == 0:
        print(f"Megatron MLP: {ranks} ranks, output and three gradients right")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
