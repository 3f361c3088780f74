"""Features of PyTorch that use collectives, part by part, as a script for torchrun: prints the
results of each rank. The arguments name parts; without any, all run. `TEMP_DIR` is a directory of
all ranks.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.distributed.nn.functional as differentiable
from torch import nn
from torch.distributed import _functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

BACKEND = os.environ.get("BACKEND", "ahbm")
DEVICE = os.environ.get("DEVICE", "cpu" if BACKEND == "gloo" else BACKEND)
PARTS: dict[str, Callable[[], None]] = {}

dist.init_process_group(BACKEND)
RANK, SIZE = dist.get_rank(), dist.get_world_size()


def part(function: Callable[[], None]) -> Callable[[], None]:
    """Add a part by the name of its function."""
    PARTS[function.__name__] = function
    return function


def show(name: str, *values: object) -> None:
    """Print values in one write, since the ranks share a pipe; of tensors their elements."""
    listed = [
        each.detach().cpu().flatten().tolist() if isinstance(each, torch.Tensor) else each
        for each in values
    ]
    sys.stdout.write(f"= {name} of rank {RANK}: {listed}\n")
    sys.stdout.flush()


def data(*shape: int, seed: int = 0) -> torch.Tensor:
    """Numbers that all ranks and devices draw alike."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def mine(*shape: int) -> torch.Tensor:
    """Numbers of this rank."""
    return data(*shape, seed=100 + RANK)


class Perceptron(nn.Module):
    """Two layers, and a third one, which the forward pass may leave out."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.norm = nn.LayerNorm(16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)
        self.spare = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor, *, spare: bool = True) -> torch.Tensor:
        """The output, of the shape of the input."""
        x = self.down(torch.relu(self.up(self.norm(x))))
        return self.spare(x) if spare else x


def model() -> Perceptron:
    """A model with the same weights on every rank and device."""
    return Perceptron().to(DEVICE)


def trained(name: str, parallel: nn.Module, *, steps: int = 2, **options: bool) -> None:
    """Train on the numbers of this rank, and print the losses."""
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        loss = parallel(mine(4, 16) + step, **options).square().mean()
        loss.backward()
        optimizer.step()
        show(f"{name}, loss of step {step},", loss)


@part
def collectives() -> None:
    """Forms of the collectives that `collectives.py` does not call."""
    outputs = [torch.zeros(3, device=DEVICE) for _ in range(SIZE)]
    dist.all_gather(outputs, mine(3))
    show("all_gather", *outputs)
    matrix = torch.zeros(2 * SIZE, 3, device=DEVICE)
    dist.all_gather_into_tensor(matrix, mine(2, 3))
    show("all_gather_into_tensor", matrix)
    reduced = torch.zeros(3, device=DEVICE)
    dist.reduce_scatter(reduced, [mine(3) * each for each in range(SIZE)])
    show("reduce_scatter", reduced)
    several = [mine(3), mine(2, 2).t(), mine(5)]
    dist.all_reduce_coalesced(several)
    show("all_reduce_coalesced", *several)
    sent, received = [each + 1 for each in range(SIZE)], [RANK + 1] * SIZE
    rows = torch.zeros(sum(received), 2, device=DEVICE)
    dist.all_to_all_single(rows, mine(sum(sent), 2), received, sent)
    show("all_to_all_single", rows)
    for dtype in (torch.int64, torch.float64, torch.bfloat16, torch.uint8, torch.int32):
        tensor = torch.arange(5, device=DEVICE).to(dtype) + RANK
        dist.all_reduce(tensor, dist.ReduceOp.MAX)
        show(f"greatest {dtype}", tensor.double())
    flags = torch.tensor([True, False, RANK > 0], device=DEVICE)
    dist.broadcast(flags, 0)
    show("flags", flags)
    on_host = torch.arange(4.0) + RANK
    work = dist.all_reduce(on_host, async_op=True)
    work.wait()
    show("all_reduce of a tensor of the host", on_host)


@part
def messages() -> None:
    """Sends and receives side by side, and objects."""
    after, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    received = [torch.zeros(4, device=DEVICE), torch.zeros(2, 2, device=DEVICE)]
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.irecv, received[0], before),
            dist.P2POp(dist.isend, mine(4), after),
            dist.P2POp(dist.isend, mine(2, 2), before),
            dist.P2POp(dist.irecv, received[1], after),
        ]
    )
    for work in works:
        work.wait()
    show("batch_isend_irecv", *received)
    if RANK == 0:
        dist.send_object_list([{"step": 3}, "end"], SIZE - 1)
    elif RANK == SIZE - 1:
        objects = [None, None]
        dist.recv_object_list(objects, 0)
        show("recv_object_list", objects)
    objects = [{"root": RANK}, RANK]
    dist.broadcast_object_list(objects, SIZE - 1)
    show("broadcast_object_list", objects)
    scattered = [None]
    dist.scatter_object_list(scattered, [f"for {each}" for each in range(SIZE)] if not RANK else [])
    show("scatter_object_list", scattered)
    gathered = [None] * SIZE if not RANK else None
    dist.gather_object((RANK, "x" * RANK), gathered)
    show("gather_object", gathered)


@part
def groups() -> None:
    """Groups, and a mesh of two axes."""
    halves = [dist.new_group([each, each + SIZE // 2]) for each in range(SIZE // 2)]
    tensor = mine(4)
    dist.all_reduce(tensor, group=halves[RANK % (SIZE // 2)])
    show("all_reduce of half", tensor)
    own, _ = dist.new_subgroups(2)
    gathered = torch.zeros(8, device=DEVICE)
    dist.all_gather_into_tensor(gathered, mine(4), group=own)
    show("all_gather of a subgroup", gathered)
    mesh = init_device_mesh(DEVICE, (SIZE // 2, 2), mesh_dim_names=("rows", "columns"))
    for name in ("rows", "columns"):
        tensor = mine(4)
        dist.all_reduce(tensor, group=mesh.get_group(name))
        show(f"all_reduce along {name}", tensor)
    show("coordinate", mesh.get_coordinate())


@part
def functions() -> None:
    """Functional collectives, whose results are waited for at their first use."""
    group = init_device_mesh(DEVICE, (SIZE,))
    total = functional.all_reduce(mine(4), "sum", group)
    gathered = functional.all_gather_tensor(mine(2, 3), 1, group)
    reduced = functional.reduce_scatter_tensor(mine(4 * SIZE), "sum", 0, group)
    show("functional all_reduce", total + 1)
    show("functional all_gather_tensor", gathered * 2)
    show("functional reduce_scatter_tensor", functional.wait_tensor(reduced))
    turned = functional.all_to_all_single(mine(SIZE), [1] * SIZE, [1] * SIZE, group)
    show("functional all_to_all_single", turned)
    show("functional broadcast", functional.broadcast(mine(4), 0, group))
    several = functional.all_reduce_coalesced([mine(2), mine(3)], "max", group)
    show("functional all_reduce_coalesced", *several)
    several = functional.all_gather_into_tensor_coalesced([mine(2), mine(3)], group)
    show("functional all_gather_into_tensor_coalesced", *several)
    leaf = mine(4).requires_grad_()
    differentiable.all_reduce(leaf * 2).square().sum().backward()
    show("gradient of all_reduce", leaf.grad)
    leaf = mine(4).requires_grad_()
    sum(each.sum() * (RANK + 1) for each in differentiable.all_gather(leaf)).backward()
    show("gradient of all_gather", leaf.grad)
    leaf = mine(4).requires_grad_()
    differentiable.broadcast(leaf, 0).mul(RANK + 1).sum().backward()
    show("gradient of broadcast", leaf.grad)


@part
def data_parallel() -> None:
    """DistributedDataParallel with its options."""
    trained("data parallel", DistributedDataParallel(model()))
    unused = DistributedDataParallel(model(), find_unused_parameters=True)
    trained("data parallel with unused parameters", unused, spare=False)
    static = DistributedDataParallel(model(), static_graph=True, gradient_as_bucket_view=True)
    trained("data parallel with a static graph", static, steps=3)
    parallel = DistributedDataParallel(model(), bucket_cap_mb=0.001)
    with parallel.no_sync():
        parallel(mine(4, 16)).square().mean().backward()
    parallel(mine(4, 16) + 1).square().mean().backward()
    show("accumulated gradient", parallel.module.up.weight.grad.sum(1))


@part
def sharded() -> None:
    """FSDP2 with its options, and on a mesh of replicas."""
    for reshard in (True, False):
        whole = model()
        for layer in (whole.up, whole.down):
            fully_shard(layer, reshard_after_forward=reshard)
        trained(f"fully_shard with reshard_after_forward={reshard}", fully_shard(whole))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    trained("fully_shard in bfloat16", fully_shard(model(), mp_policy=policy))
    if SIZE == 4:
        mesh = init_device_mesh(DEVICE, (2, 2), mesh_dim_names=("replicas", "shards"))
        trained("fully_shard on a mesh", fully_shard(model(), mesh=mesh))


@part
def tensor_parallel() -> None:
    """Layers cut by columns and rows, and activations cut by their sequence."""
    mesh = init_device_mesh(DEVICE, (SIZE,))
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    cut = parallelize_module(model(), mesh, plan)
    loss = cut(data(4, 16)).square().mean()
    loss.backward()
    show("tensor parallel", loss, cut.up.weight.grad.to_local().sum(1))
    sequence = {
        "norm": SequenceParallel(sequence_dim=0),
        "up": PrepareModuleInput(input_layouts=(Shard(0),), desired_input_layouts=(Replicate(),)),
        "down": RowwiseParallel(),
    }
    cut = model()
    parallelize_module(cut, mesh, sequence)
    parallelize_module(cut.up, mesh, ColwiseParallel())
    loss = cut(distribute_tensor(data(8, 16), mesh, [Shard(0)])).square().mean()
    loss.backward()
    show("sequence parallel", loss, cut.norm.weight.grad.full_tensor())


@part
def tensors() -> None:
    """DTensor between all placements."""
    mesh = init_device_mesh(DEVICE, (SIZE,))
    whole = data(6, 5)
    placements = (Shard(0), Shard(1), Replicate())
    given = [distribute_tensor(whole, mesh, [source]) for source in placements]
    for source in (*given, DTensor.from_local(mine(6, 5), mesh, [Partial()])):
        for target in placements:
            moved = source.redistribute(mesh, [target])
            show(f"{source.placements[0]} to {target}", moved.to_local())
    matrix = distribute_tensor(whole, mesh, [Shard(1)]) @ distribute_tensor(
        data(5, 4, seed=1), mesh, [Shard(0)]
    )
    show("product", matrix.full_tensor(), str(matrix.placements))


@part
def pipeline() -> None:
    """One forward, one backward, with as many stages as ranks."""
    torch.manual_seed(1)
    layers = [nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(SIZE)]
    stage = PipelineStage(layers[RANK].to(DEVICE), RANK, SIZE, torch.device(DEVICE))
    schedule = Schedule1F1B(stage, 2 * SIZE, loss_fn=lambda y, target: (y - target).square().mean())
    losses: list[torch.Tensor] = []
    x = data(4 * SIZE, 16)
    given = () if RANK else (x,)
    last = {"target": x, "losses": losses} if RANK == SIZE - 1 else {}
    schedule.step(*given, **last)
    show("pipeline", *losses, layers[RANK][0].weight.grad.sum(1))


@part
def optimizer() -> None:
    """Optimizer states dealt over the ranks."""
    parallel = DistributedDataParallel(model())
    zero = ZeroRedundancyOptimizer(parallel.parameters(), torch.optim.AdamW, lr=0.01)
    for step in range(2):
        zero.zero_grad()
        loss = parallel(mine(4, 16) + step).square().mean()
        loss.backward()
        zero.step()
        show(f"zero, loss of step {step},", loss)
    zero.consolidate_state_dict(0)
    show("zero, states", len(zero.state_dict()["state"]) if not RANK else None)


@part
def checkpoint() -> None:
    """Shards of a model and of its optimizer through files."""
    whole = fully_shard(model())
    adam = torch.optim.AdamW(whole.parameters(), lr=0.01)
    whole(mine(4, 16)).square().mean().backward()
    adam.step()
    path = Path(os.environ["TEMP_DIR"]) / BACKEND
    dcp.save({"model": whole.state_dict(), "step": 7}, checkpoint_id=path)
    other = fully_shard(model())
    state = {"model": other.state_dict(), "step": 0}
    dcp.load(state, checkpoint_id=path)
    other.load_state_dict(state["model"])
    show("checkpoint", state["step"], other.up.weight.to_local().sum(1))


for each in sys.argv[1:] or PARTS:
    PARTS[each]()
    dist.barrier()
dist.destroy_process_group()
