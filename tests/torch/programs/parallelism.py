"""Parallelisms of PyTorch that use collectives, for torchrun; prints losses and tensors."""

import io
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as differentiable
from torch import nn
from torch.distributed import _functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

BACKEND = os.environ.get("BACKEND", "ahbm")
DEVICE = os.environ.get("DEVICE", "cpu" if BACKEND == "gloo" else BACKEND)

dist.init_process_group(BACKEND)
RANK = dist.get_rank()
MESH = init_device_mesh(DEVICE, (dist.get_world_size(),))
torch.manual_seed(0)
X = torch.randn(8, 32).to(DEVICE)


def show(name: str, *values: float) -> None:
    """Print numbers in one write, since the ranks share a pipe."""
    sys.stdout.write(f"= {name} of rank {RANK}: {[round(value, 5) for value in values]}\n")
    sys.stdout.flush()


def perceptron() -> nn.Sequential:
    """The same weights on every rank and device."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))


def zero() -> None:
    """Optimizer states dealt over the ranks."""
    model = nn.parallel.DistributedDataParallel(perceptron().to(DEVICE))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    for _ in range(2):
        loss = model(X).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        show("zero", loss.item())


def pipeline() -> None:
    """Two stages with two micro-batches."""
    model = perceptron()
    part = nn.Sequential(*(model[:2] if not RANK else model[2:])).to(DEVICE)
    stage = PipelineStage(part, RANK, 2, torch.device(DEVICE))
    schedule = ScheduleGPipe(stage, 2, loss_fn=lambda y, target: (y - target).square().mean())
    losses: list[torch.Tensor] = []
    if RANK:
        schedule.step(target=X, losses=losses)
    else:
        schedule.step(X)
    show("pipeline", *(loss.item() for loss in losses))


def tensors() -> None:
    """Distributed tensors, and collectives as functions."""
    matrix = distribute_tensor(torch.arange(32.0).view(8, 4).to(DEVICE), MESH, [Shard(0)])
    columns = matrix.redistribute(MESH, [Shard(1)]).to_local().cpu()
    show("redistribute", *columns.flatten().tolist())
    product = (matrix @ matrix.t()).redistribute(MESH, [Replicate()])
    show("product", product.to_local().sum().item())
    show("functional", *functional.all_reduce(X[0, :3] * (RANK + 1), "sum", MESH).cpu().tolist())
    leaf = X[0, :4].clone().requires_grad_()
    differentiable.all_reduce(leaf).square().sum().backward()
    show("differentiable", *leaf.grad.cpu().tolist())


def checkpoint() -> None:
    """States of a model through a file, on the device and on the host; mixed precision."""
    model, file = perceptron().to(DEVICE), io.BytesIO()
    torch.save(model.state_dict(), file)
    for place in (DEVICE, "cpu"):
        file.seek(0)
        state = torch.load(file, map_location=place)
        assert state["0.weight"].device.type == place
        model.load_state_dict(state)
    with torch.autocast(DEVICE, torch.bfloat16):
        y = model(X)
    assert y.dtype == torch.bfloat16
    show("checkpoint", model(X).sum().item())


for each in (zero, pipeline, tensors, checkpoint):
    each()
    dist.barrier()
dist.destroy_process_group()
