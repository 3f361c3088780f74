"""Training of a two-layer network with parameters sharded over the ranks, as FSDP does it.

All parameters lie in one flat tensor, of which each rank keeps a part. A step gathers the
parameters, computes the gradients on the rank's own data, reduces and scatters them, and updates
the rank's part. The losses are those of the same training on one rank in float64. Lines with a
comment "PyTorch:" are those that differ from the same program for PyTorch; the comment holds the
original line.

    kernbench --sips 4 examples/pytorch_fsdp.py
"""

import numpy as np

import runtime.torch.distributed as dist  # PyTorch: import torch.distributed as dist
from kernbench import torch  # PyTorch: import torch

INPUTS, HIDDEN, OUTPUTS, BATCH, STEPS, RATE = 16, 32, 8, 32, 4, 0.1
SHAPES = ((INPUTS, HIDDEN), (HIDDEN, OUTPUTS))


def windows(flat):
    """The two weights as windows of the flat tensor, without copies."""
    first = INPUTS * HIDDEN
    return (
        flat.narrow(0, 0, first).view(SHAPES[0]),
        flat.narrow(0, first, flat.numel() - first).view(SHAPES[1]),
    )


def step(x, target, w1, w2, g1, g2):
    """The loss of this rank's batch; writes the gradients to `g1` and `g2`."""
    hidden = torch.relu(x @ w1)
    error = hidden @ w2 - target
    scale = 2 / error.numel()
    g2.copy_((hidden.t() @ error) * scale)
    g1.copy_(x.t() @ ((error @ w2.t()) * (hidden > 0).to(torch.float32)) * scale)
    return (error * error).mean()


def reference(flat, batches, targets):
    """The losses of the same training in float64."""
    flat, losses = flat.astype(np.float64), []
    x, target = np.concatenate(batches), np.concatenate(targets)
    for _ in range(STEPS):
        w1, w2 = (
            part.reshape(shape)
            for part, shape in zip(np.split(flat, [INPUTS * HIDDEN]), SHAPES, strict=True)
        )
        hidden = np.maximum(x @ w1, 0)
        error = hidden @ w2 - target
        losses.append((error**2).mean())
        scale = 2 / error.size
        g1 = x.T @ ((error @ w2.T) * (hidden > 0)) * scale
        flat = flat - RATE * np.concatenate([g1.ravel(), (hidden.T @ error * scale).ravel()])
    return losses


def main():
    """Some steps of gradient descent."""
    dist.init_process_group("ahbm")  # PyTorch: dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    rng = np.random.default_rng(0)
    numel = sum(rows * columns for rows, columns in SHAPES)
    start = (rng.normal(size=numel) / 4).astype(np.float32)
    batches = [rng.normal(size=(BATCH, INPUTS)).astype(np.float32) for _ in range(ranks)]
    targets = [rng.normal(size=(BATCH, OUTPUTS)).astype(np.float32) for _ in range(ranks)]

    own = torch.from_numpy(start.reshape(ranks, -1)[rank].copy())
    x, target = torch.from_numpy(batches[rank]), torch.from_numpy(targets[rank])
    parameters, gradients = torch.empty(numel), torch.empty(numel)
    own_gradient = torch.empty(numel // ranks)
    losses = []
    for _ in range(STEPS):
        dist.all_gather_into_tensor(parameters, own)
        loss = step(x, target, *windows(parameters), *windows(gradients))
        dist.reduce_scatter_tensor(own_gradient, gradients)
        own -= own_gradient * (RATE / ranks)
        dist.all_reduce(loss)
        losses.append(loss.item() / ranks)

    np.testing.assert_allclose(losses, reference(start, batches, targets), rtol=1e-5)
    if rank == 0:
        print("FSDP loop:", ranks, "ranks, losses", " ".join(f"{loss:.4f}" for loss in losses))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
