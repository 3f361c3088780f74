"""Multi-head attention with the heads dealt over the ranks, checked against float64.

Each rank projects queries, keys and values of its own heads, computes softmax(Q K^T / sqrt(d)) V
for each, and multiplies by its rows of the output weight; one all-reduce sums the parts. Lines with
a comment "PyTorch:" are those that differ from the same program for PyTorch; the comment holds the
original line.

    kernbench --sips 4 examples/pytorch_attention.py
"""

from math import sqrt

import numpy as np

import runtime.torch.distributed as dist  # PyTorch: import torch.distributed as dist
from kernbench import torch  # PyTorch: import torch

SEQUENCE, MODEL, HEADS, DEPTH = 32, 64, 8, 16


def attend(x, wq, wk, wv):
    """One head: (sequence, depth) from the input (sequence, model)."""
    q, k, v = x @ wq, x @ wk, x @ wv
    scores = (q @ k.t()) * (1 / sqrt(DEPTH))
    return torch.softmax(scores, dim=-1) @ v


def reference(x, wq, wk, wv, wo):
    """All heads in float64."""
    total = np.zeros((SEQUENCE, MODEL))
    for head in range(HEADS):
        q, k, v = (x.astype(np.float64) @ w[head] for w in (wq, wk, wv))
        scores = q @ k.T / sqrt(DEPTH)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        total += weights / weights.sum(axis=1, keepdims=True) @ v @ wo[head]
    return total


def main():
    """One attention layer."""
    dist.init_process_group("ahbm")  # PyTorch: dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(SEQUENCE, MODEL)).astype(np.float32)
    wq, wk, wv = (rng.normal(size=(HEADS, MODEL, DEPTH)).astype(np.float32) / 8 for _ in range(3))
    wo = rng.normal(size=(HEADS, DEPTH, MODEL)).astype(np.float32) / 8

    tokens = torch.from_numpy(x)
    out = torch.zeros(SEQUENCE, MODEL)
    for head in range(rank * HEADS // ranks, (rank + 1) * HEADS // ranks):
        weights = [torch.from_numpy(w[head].copy()) for w in (wq, wk, wv, wo)]
        out += attend(tokens, *weights[:3]) @ weights[3]
    dist.all_reduce(out)

    np.testing.assert_allclose(out.numpy(), reference(x, wq, wk, wv, wo), rtol=0, atol=1e-5)
    if rank == 0:
        print(f"attention: {HEADS} heads on {ranks} ranks, right")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
