"""A mixture of experts, one expert a rank: tokens travel to their expert and back.

A gate selects the expert of each token. The ranks exchange how many tokens each sends to each, then
the tokens by an all-to-all with uneven splits, then the results. The output is compared with the
same layer in float64. Lines with a comment "PyTorch:" are those that differ from the same program
for PyTorch; the comment holds the original line.

    kernbench --sips 4 examples/pytorch_moe.py
"""

import numpy as np

import runtime.torch.distributed as dist  # PyTorch: import torch.distributed as dist
from kernbench import torch  # PyTorch: import torch

TOKENS, MODEL = 24, 32


def moe(x, gate, w1, w2):
    """The layer for this rank's tokens (tokens, model)."""
    ranks = dist.get_world_size()
    scores = (x @ gate).numpy()
    expert = scores.argmax(axis=1)
    order = np.argsort(expert, kind="stable")
    counts = np.bincount(expert, minlength=ranks)

    sent = torch.from_numpy(counts)
    incoming = torch.empty_like(sent)
    dist.all_to_all_single(incoming, sent)
    incoming = incoming.tolist()

    tokens = torch.empty(sum(incoming), MODEL)
    dist.all_to_all_single(tokens, torch.from_numpy(x.numpy()[order]), incoming, counts.tolist())
    results = torch.relu(tokens @ w1) @ w2
    returned = torch.empty(TOKENS, MODEL)
    dist.all_to_all_single(returned, results, counts.tolist(), incoming)

    out = np.empty((TOKENS, MODEL), np.float32)
    out[order] = returned.numpy()
    return out, expert


def main():
    """One layer."""
    dist.init_process_group("ahbm")  # PyTorch: dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ranks, TOKENS, MODEL)).astype(np.float32)
    gate = rng.normal(size=(MODEL, ranks)).astype(np.float32)
    w1, w2 = (rng.normal(size=(ranks, MODEL, MODEL)).astype(np.float32) / 6 for _ in range(2))

    out, expert = moe(
        torch.from_numpy(x[rank].copy()),
        torch.from_numpy(gate),
        torch.from_numpy(w1[rank].copy()),
        torch.from_numpy(w2[rank].copy()),
    )
    expected = np.stack(
        [
            np.maximum(token @ w1[e].astype(np.float64), 0) @ w2[e]
            for token, e in zip(x[rank], expert, strict=True)
        ]
    )
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-5)
    loads = [None] * ranks
    dist.all_gather_object(loads, int((expert == rank).sum()))
    if rank == 0:
        print(f"mixture of experts: {ranks} experts, {ranks * TOKENS} tokens, right")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
