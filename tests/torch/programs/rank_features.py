"""Features of several ranks that PyTorch has for GPUs alone, beside equal computations with gloo.

FSDP1 is DistributedDataParallel there, and batch normalisation over ranks that of all rows.
"""

import os
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed import _symmetric_memory as symmetric
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    FullStateDictConfig,
    FullyShardedDataParallel,
    MixedPrecision,
    StateDictType,
)
from torch.distributed.tensor.experimental import context_parallel

BACKEND = os.environ.get("BACKEND", "ahbm")
DEVICE = "cpu" if BACKEND == "gloo" else BACKEND
dist.init_process_group(f"cpu:{BACKEND}" if BACKEND == "gloo" else BACKEND)
RANK, SIZE = dist.get_rank(), dist.get_world_size()


def show(name: str, *values: float) -> None:
    text = " ".join(f"{each:.5f}" for each in values)
    sys.stdout.write(f"= rank {RANK} {name}: {text}\n")
    sys.stdout.flush()


def sharded(name: str, **options) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)).to(DEVICE)
    if DEVICE == "cpu":
        model = nn.parallel.DistributedDataParallel(model)
        clip = nn.utils.clip_grad_norm_
    else:
        model = FullyShardedDataParallel(model, **options)
        clip = FullyShardedDataParallel.clip_grad_norm_
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(3):
        torch.manual_seed(10 * step + RANK)
        loss = model(torch.randn(4, 8).to(DEVICE)).square().mean()
        loss.backward()
        given = (model.parameters(), 0.1) if DEVICE == "cpu" else (model, 0.1)
        norm = clip(*given)
        optimizer.step()
        optimizer.zero_grad()
        show(name, loss.item(), norm.item())
    show_state(name, model)


def show_state(name: str, model: nn.Module) -> None:
    """The whole state, which a rank gathers on its host."""
    if isinstance(model, FullyShardedDataParallel):
        whole, config = StateDictType.FULL_STATE_DICT, FullStateDictConfig(True, True)
        with FullyShardedDataParallel.state_dict_type(model, whole, config):
            state = model.state_dict()
    else:
        state = model.module.state_dict()
    if not RANK:
        assert {each.device.type for each in state.values()} == {"cpu"}
        show(f"{name}, state", *(each.sum().item() for each in state.values()))


def normalised() -> None:
    torch.manual_seed(0)
    rows = torch.randn(2 * SIZE, 3, 5, 4)
    scales = torch.randn(2 * SIZE, 3, 5, 4)
    mine = slice(2 * RANK, 2 * RANK + 2)
    norm = nn.BatchNorm2d(3)
    nn.init.normal_(norm.weight)
    norm = norm if DEVICE == "cpu" else nn.SyncBatchNorm.convert_sync_batchnorm(norm).to(DEVICE)
    x = (rows if DEVICE == "cpu" else rows[mine]).to(DEVICE).requires_grad_()
    y = norm(x)
    (y * (scales if DEVICE == "cpu" else scales[mine]).to(DEVICE)).sum().backward()
    gradients = [norm.weight.grad, norm.bias.grad]
    if DEVICE != "cpu":
        for each in gradients:
            dist.all_reduce(each)
    own = (y[mine], x.grad[mine]) if DEVICE == "cpu" else (y, x.grad)
    values = [*own, *gradients, norm.running_mean, norm.running_var]
    for each in values:
        show("batch normalisation", *each.detach().cpu().flatten()[:7].tolist())
    own = x.detach()[mine] if DEVICE == "cpu" else x.detach()
    show("batch normalisation of one", *norm.eval()(own)[0, 0, 0].tolist())


def saved(folder: str) -> None:
    state = {"rank": torch.full((3,), float(RANK)).to(DEVICE), "same": torch.ones(2).to(DEVICE)}
    future = dcp.async_save({"model": state}, checkpoint_id=folder)
    future.result()
    loaded = {"same": torch.zeros(2).to(DEVICE)}
    dcp.load({"model": loaded}, checkpoint_id=folder)
    show("async_save", *loaded["same"].tolist())
    future = dcp.async_save({"model": state}, checkpoint_id=f"{Path(__file__)}/no folder")
    show("async_save to no folder", float(future.exception() is not None))


def refused(text: str, call) -> None:
    with pytest.raises(NotImplementedError, match=text):
        call()


sharded("FSDP1")
sharded("FSDP1, original parameters", use_orig_params=True)
if DEVICE != "cpu":
    half = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    torch.manual_seed(0)
    model = FullyShardedDataParallel(nn.Linear(8, 8).to(DEVICE), mixed_precision=half)
    model(torch.ones(2, 8, device=DEVICE)).sum().backward()
    assert all(each.grad.isfinite().all() for each in model.parameters())
    mesh, x = init_device_mesh(DEVICE, (SIZE,)), torch.ones(1, 1, 4, 8, device=DEVICE)
    refused(
        "batch_isend_irecv",
        lambda: context_parallel(mesh, buffers=[x], buffer_seq_dims=[2]),
    )
    refused("exchange tensors by collectives", lambda: symmetric.empty(4, device=DEVICE))
    refused("exchange tensors by collectives", lambda: symmetric.rendezvous(x, dist.group.WORLD))
normalised()
saved(sys.argv[1])
dist.destroy_process_group()
