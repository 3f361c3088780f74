"""Three steps of DistributedDataParallel, as a script for torchrun; prints losses and sums."""

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

BACKEND = os.environ.get("BACKEND", "ahbm")
DEVICE = os.environ.get("DEVICE", "cpu" if BACKEND == "gloo" else BACKEND)


def report(line: str) -> None:
    """Print in one write, since the ranks share a pipe."""
    sys.stdout.write(f"= {line}\n")
    sys.stdout.flush()


dist.init_process_group(BACKEND)
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 10)
).to(DEVICE)
parallel = DistributedDataParallel(model)
optimizer = torch.optim.Adam(parallel.parameters(), lr=1e-2)
source = torch.Generator().manual_seed(rank)
for step in range(3):
    x = torch.randn(32, 64, generator=source).to(DEVICE)
    y = torch.randint(0, 10, (32,), generator=source).to(DEVICE)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(parallel(x), y)
    loss.backward()
    optimizer.step()
    report(f"rank {rank} step {step} loss {loss.item():.5f}")
total = sum(parameter.double().sum().item() for parameter in model.parameters())
report(f"rank {rank} parameters {total:.3f}")
dist.destroy_process_group()
