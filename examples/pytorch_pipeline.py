"""A network cut into stages, one a rank, trained with micro-batches that follow each other.

All forward passes come first, then all backward passes (the schedule of GPipe). Activations go to
the next rank and their gradients come back as messages. The gradients are compared with those of
the uncut network in float64. Lines with a comment "PyTorch:" are those that differ from the same
program for PyTorch; the comment holds the original line.

    kernbench --sips 4 examples/pytorch_pipeline.py
"""

import numpy as np

import runtime.torch.distributed as dist  # PyTorch: import torch.distributed as dist
from kernbench import torch  # PyTorch: import torch

WIDTH, MICRO_BATCHES, ROWS = 32, 4, 8


def pipeline(rank, ranks, weight, batches, targets):
    """The gradient of this stage's weight, summed over the micro-batches, and the losses."""
    kept, losses, sends = [], [], []
    gradient = torch.zeros(WIDTH, WIDTH)
    for batch in batches:
        if rank == 0:
            x = torch.from_numpy(batch)
        else:
            x = torch.empty(ROWS, WIDTH)
            dist.recv(x, src=rank - 1)
        out = torch.relu(x @ weight)
        kept.append((x, out))
        if rank < ranks - 1:
            sends.append(dist.isend(out, dst=rank + 1))
    for (x, out), target in zip(kept, targets, strict=True):
        if rank == ranks - 1:
            error = out - torch.from_numpy(target)
            losses.append((error * error).sum())
            out_gradient = error * 2
        else:
            out_gradient = torch.empty(ROWS, WIDTH)
            dist.recv(out_gradient, src=rank + 1)
        before_relu = out_gradient * (out > 0).to(torch.float32)
        gradient += x.t() @ before_relu
        if rank > 0:
            sends.append(dist.isend(before_relu @ weight.t(), dst=rank - 1))
    for send in sends:
        send.wait()
    return gradient, [loss.item() for loss in losses]


def reference(weights, batches, targets):
    """The gradients of all stages and the losses in float64."""
    gradients, losses = [np.zeros((WIDTH, WIDTH)) for _ in weights], []
    for batch, target in zip(batches, targets, strict=True):
        outputs = [batch.astype(np.float64)]
        for weight in weights:
            outputs.append(np.maximum(outputs[-1] @ weight, 0))
        losses.append(((outputs[-1] - target) ** 2).sum())
        gradient = 2 * (outputs[-1] - target)
        for stage in reversed(range(len(weights))):
            gradient = gradient * (outputs[stage + 1] > 0)
            gradients[stage] += outputs[stage].T @ gradient
            gradient = gradient @ weights[stage].T
    return gradients, losses


def main():
    """One step of training."""
    dist.init_process_group("ahbm")  # PyTorch: dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(ranks, WIDTH, WIDTH)).astype(np.float32) / 5
    batches = rng.normal(size=(MICRO_BATCHES, ROWS, WIDTH)).astype(np.float32)
    targets = rng.normal(size=(MICRO_BATCHES, ROWS, WIDTH)).astype(np.float32)
    gradient, losses = pipeline(
        rank, ranks, torch.from_numpy(weights[rank].copy()), batches, targets
    )
    gradients, expected = reference(weights.astype(np.float64), batches, targets)
    np.testing.assert_allclose(gradient.numpy(), gradients[rank], rtol=1e-4, atol=1e-3)
    if rank == ranks - 1:
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        print(f"pipeline: {ranks} stages, {MICRO_BATCHES} micro-batches, gradients right")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
