"""Pieces of scripts for several ranks: PyTorch's tutorials, and what trainers build on them."""

import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from features import feature, gradients, numbers, parameters, random
from torch import nn
from torch.distributed import _functional_collectives as functional
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

THEME = "Several ranks"


def perceptron(device):
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16)).to(device)


def own(*shape):
    """Random numbers that differ from rank to rank."""
    return random(*shape, seed=10 + dist.get_rank())


def whole(tensors):
    return [each.full_tensor() if isinstance(each, DTensor) else each for each in tensors]


@feature(THEME, "DistributedDataParallel, with sampler and DataLoader")
def data_parallel(device):
    model = DistributedDataParallel(perceptron(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(random(16, 16), numbers(16, 16))
    sampler = DistributedSampler(data, seed=1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(data, batch_size=4, sampler=sampler):
            optimizer.zero_grad()
            F.cross_entropy(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
    return parameters(model)


@feature(THEME, "DistributedDataParallel: no_sync, unused parameters")
def unsynchronised(device):
    model = nn.ModuleDict({"used": perceptron(device), "unused": nn.Linear(4, 4).to(device)})
    model.forward = model["used"].forward
    parallel = DistributedDataParallel(model, find_unused_parameters=True)
    with parallel.no_sync():
        parallel(own(4, 16).to(device)).square().mean().backward()
    parallel(own(4, 16).to(device)).square().mean().backward()
    return gradients(model["used"])


@feature(THEME, "DistributedDataParallel: gradients compressed to float16")
def compressed(device):
    model = DistributedDataParallel(perceptron(device))
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    model(own(4, 16).to(device)).square().mean().backward()
    return [each.half() for each in gradients(model)]


@feature(THEME, "FSDP2: blocks, mixed precision, clipping, AdamW")
def sharded(device):
    model = perceptron(device)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in (model[0], model[2], model):
        fully_shard(layer, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(2):
        loss = model(own(4, 16).to(device)).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses += [loss.detach().bfloat16(), *(each.bfloat16() for each in whole([norm]))]
    return losses


@feature(THEME, "FSDP2 and tensor parallelism on a mesh of two axes")
def two_axes(device):
    mesh = init_device_mesh(device, (1, dist.get_world_size()), mesh_dim_names=("dp", "tp"))
    model = perceptron(device)
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    y = model(random(4, 16).to(device))
    y.square().mean().backward()
    return [y.detach(), *whole(gradients(model))]


@feature(THEME, "Tensor parallelism, with the loss divided along the classes")
def tensor_parallel(device):
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    model = perceptron(device)
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    parallelize_module(model, mesh, plan)
    head = nn.Linear(16, 12).to(device)
    parallelize_module(head, mesh, ColwiseParallel(use_local_output=False))
    with loss_parallel():
        loss = F.cross_entropy(head(model(random(4, 16).to(device))), numbers(12, 4).to(device))
        loss.backward()
    return [*whole([loss.detach()]), *whole(gradients(model))]


def pipeline(device, schedule):
    model, rank = perceptron(device), dist.get_rank()
    part = model[:2] if rank == 0 else model[2:]
    stage = PipelineStage(part, rank, 2, torch.device(device))
    runner = schedule(stage, 4, loss_fn=F.mse_loss)
    losses = []
    if rank == 0:
        runner.step(random(8, 16).to(device))
    else:
        runner.step(target=random(8, 16, seed=2).to(device), losses=losses)
    return [*losses, *gradients(part)]


@feature(THEME, "Pipeline (GPipe)")
def gpipe(device):
    return pipeline(device, ScheduleGPipe)


@feature(THEME, "Pipeline (1F1B)")
def one_forward_one_backward(device):
    return pipeline(device, Schedule1F1B)


@feature(THEME, "DTensor: redistribution, operators, gradients")
def distributed_tensors(device):
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    x = distribute_tensor(random(8, 6).to(device), mesh, [Shard(0)]).requires_grad_()
    y = distribute_tensor(random(6, 4, seed=2).to(device), mesh, [Shard(1)])
    z = (x @ y).softmax(dim=1).redistribute(mesh, [Replicate()])
    z.square().sum().backward()
    columns = x.detach().redistribute(mesh, [Shard(1)]).to_local()
    return whole([z.detach(), x.grad, columns, x.detach().sum(dim=0)])


@feature(THEME, "Functional collectives")
def functional_collectives(device):
    group = dist.group.WORLD
    x = own(4, 6).to(device)
    return [
        functional.all_reduce(x, "sum", group),
        functional.all_gather_single(x, 0, group),
        functional.reduce_scatter_single(x, "sum", 0, group),
    ]


@feature(THEME, 'torch.compile(backend="aot_eager") of DDP, of FSDP2, of collectives')
def compiled(device):
    replica, shards = DistributedDataParallel(perceptron(device)), perceptron(device)
    fully_shard(shards)
    for model in (replica, shards):
        torch.compile(model, backend="aot_eager")(own(8, 16).to(device)).square().mean().backward()
    total = torch.compile(
        lambda x: functional.all_reduce(x * 2, "sum", dist.group.WORLD) + 1, backend="aot_eager"
    )
    return [total(own(8).to(device)), *gradients(replica), *whole(gradients(shards))]


@feature(THEME, "ZeroRedundancyOptimizer")
def zero(device):
    model = DistributedDataParallel(perceptron(device))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-2)
    for _ in range(2):
        optimizer.zero_grad()
        model(own(4, 16).to(device)).square().mean().backward()
        optimizer.step()
    return parameters(model)


@feature(THEME, "Experts on ranks: counts, all_to_all_single of uneven parts, gradients")
def expert_parallel(device):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x = own(6, 8).to(device).requires_grad_()
    chosen = (numbers(5, 6, seed=rank) * ranks // 5).to(device)
    order = chosen.argsort(stable=True)
    counts = torch.bincount(chosen, minlength=ranks)
    arriving = torch.empty_like(counts)
    dist.all_to_all_single(arriving, counts, [1] * ranks, [1] * ranks)
    sent, received = counts.tolist(), arriving.tolist()
    tokens = functional.all_to_all_single(x[order], received, sent, dist.group.WORLD)
    back = functional.all_to_all_single(tokens * (rank + 2), sent, received, dist.group.WORLD)
    y = torch.zeros_like(x).index_copy(0, order, back)
    y.square().sum().backward()
    return [y.detach(), x.grad]


@feature(THEME, "Distributed checkpoint (DCP): save, load into another division")
def distributed_checkpoint(device):
    folders = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folders, src=0)
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    dcp.save(
        {"x": distribute_tensor(random(8, 6).to(device), mesh, [Shard(0)])},
        storage_writer=dcp.FileSystemWriter(folders[0]),
    )
    loaded = {"x": distribute_tensor(torch.zeros(8, 6).to(device), mesh, [Shard(1)])}
    dcp.load(loaded, storage_reader=dcp.FileSystemReader(folders[0]))
    return whole(loaded.values())


@feature(THEME, "Distributed checkpoint (DCP): async_save")
def saved_meanwhile(device):
    folders = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folders, src=0)
    state = {"x": random(8, 6).to(device)}
    dcp.async_save(state, checkpoint_id=folders[0]).result()
    state["x"].zero_()
    dcp.load(state, checkpoint_id=folders[0])
    return [state["x"]]


@feature(THEME, "State of a sharded model (get_model_state_dict)")
def sharded_state(device):
    model = perceptron(device)
    fully_shard(model)
    return whole(get_model_state_dict(model).values())


@feature(THEME, "Asynchronous collectives beside products; send and receive")
def asynchronous(device):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x, y = own(8, 8).to(device), random(8, 8).to(device)
    work = dist.all_reduce(x, async_op=True)
    z = y @ y
    work.wait()
    arrived = torch.empty_like(z)
    for request in dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, x[rank].contiguous(), (rank + 1) % ranks),
            dist.P2POp(dist.irecv, arrived[0], (rank - 1) % ranks),
        ]
    ):
        request.wait()
    return [x, z, arrived[0]]


@feature(THEME, "Groups, broadcast, gather, scatter, collectives of objects")
def groups(device):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    alone = [dist.new_group([each]) for each in range(ranks)][rank]
    x = own(4).to(device)
    dist.all_reduce(x, group=alone)
    dist.broadcast(x, src=0)
    gathered = [torch.empty_like(x) for _ in range(ranks)] if rank == 0 else None
    dist.gather(x * rank, gathered, dst=0)
    part = torch.empty(2, device=device)
    dist.scatter(part, list(random(ranks, 2).to(device)) if rank == 0 else None, src=0)
    names = [None] * ranks
    dist.all_gather_object(names, f"rank {rank}")
    listed = [{"lr": 0.1} if rank == 0 else None]
    dist.broadcast_object_list(listed, src=0)
    assert names == [f"rank {each}" for each in range(ranks)]
    assert listed == [{"lr": 0.1}]
    return [x, part, *(gathered or [])]
