"""Functions and models under `torch.compile`, each compared with its eager form.

Prints a line for each and rank: whether the results are equal, the frames that TorchDynamo
compiled, its graph breaks, and how many of the frames are of kernbench. With BACKEND=gloo the
device is the CPU.
"""

import os
import sys
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch._dynamo import convert_frame
from torch._dynamo.utils import counters
from torch.distributed import _functional_collectives as functional
from torch.distributed.fsdp import fully_shard
from torch.utils.checkpoint import checkpoint

from runtime.core.code.package_check import is_own

BACKEND = os.environ.get("BACKEND", "ahbm")
DEVICE = "cpu" if BACKEND == "gloo" else BACKEND
dist.init_process_group(BACKEND)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
files: list[str] = []


def noted(convert: Callable) -> Callable:
    def call(self, frame, *given, **options):
        files.append(frame.f_code.co_filename)
        return convert(self, frame, *given, **options)

    return call


convert_frame.ConvertFrameAssert.__call__ = noted(convert_frame.ConvertFrameAssert.__call__)


def show(name: str, results: Callable[[bool], list]) -> None:
    """Compare `results` of the eager form and of the compiled one."""
    torch.compiler.reset()
    counters.clear()
    files.clear()
    eager, compiled = results(False), results(True)
    own = sum(map(is_own, files))
    sys.stdout.write(
        f"= {name} on rank {RANK}: equal {eager == compiled}, {counters['frames']['total']} "
        f"frames, {sum(counters['graph_break'].values())} breaks, {own} of kernbench\n"
    )
    sys.stdout.flush()


def show_call(name: str, function: Callable, *given: torch.Tensor) -> None:
    def results(compiled: bool) -> list:
        called = torch.compile(function, backend="aot_eager") if compiled else function
        outputs = called(*given)
        outputs = [outputs] if isinstance(outputs, torch.Tensor) else outputs
        return [each.tolist() for each in outputs]

    show(name, results)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Model(nn.Module):
    def __init__(self, saves: bool):
        super().__init__()
        self.blocks, self.saves = nn.ModuleList([Block(), Block()]), saves

    def forward(self, x):
        for each in self.blocks:
            x = each(x) if self.saves else checkpoint(each, x, use_reentrant=False)
        return x


def losses(kind: str, saves: bool, compiled: bool) -> list[float]:
    torch.manual_seed(0)
    model = Model(saves).to(DEVICE)
    if kind == "ddp":
        model = nn.parallel.DistributedDataParallel(model)
    elif kind == "fsdp":
        for each in model.blocks:
            fully_shard(each)
        fully_shard(model)
    call = torch.compile(model, backend="aot_eager") if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for step in range(2):
        torch.manual_seed(10 * step + RANK)
        loss = call(torch.randn(4, 8).to(DEVICE)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    return found


def broken(x):
    """Two linear layers, and operators that run between the graphs."""
    y = two[0](x)
    if y.mean().item() > 1e9:
        return y
    torch._dynamo.graph_break()
    loss = two[2](two[1](y)).square().sum()
    classes = torch.arange(len(x), device=DEVICE)
    attended = nn.functional.scaled_dot_product_attention(y[None], y[None], y[None])
    loss = loss + nn.functional.cross_entropy(y, classes) + attended.sum()
    loss.backward()
    return [loss, *(each.grad for each in two.parameters() if each.grad is not None)]


def cleared(x):
    two.zero_grad()
    return broken(x)


torch.manual_seed(0)
two = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)).to(DEVICE)
x = torch.randn(2 * SIZE, 8).to(DEVICE)
show_call("two linear layers", lambda x: two[2](two[0](x)), x)
show_call("graph breaks", cleared, x)
GROUP = dist.group.WORLD
rows = torch.arange(4.0 * SIZE).view(2 * SIZE, 2).to(DEVICE) + RANK
sizes = [2] * SIZE


def collectives(x):
    moved = x.clone()
    dist.all_reduce(moved)
    listed = [torch.empty_like(x) for _ in range(SIZE)]
    dist.all_gather(listed, x)
    return [moved * 2, *(each + 1 for each in listed)]


def asynchronous(x):
    total = x.clone()
    work = dist.all_reduce(total, async_op=True)
    product = x @ x.t()
    work.wait()
    return total + 1, product


show_call("all_reduce", lambda x: functional.all_reduce(x, "sum", GROUP) + 1, rows)
show_call("all_gather", lambda x: functional.all_gather_tensor(x, 0, GROUP) + 1, rows)
show_call("reduce_scatter", lambda x: functional.reduce_scatter_tensor(x, "sum", 0, GROUP), rows)
show_call("all_to_all", lambda x: functional.all_to_all_single(x, sizes, sizes, GROUP) + 1, rows)
show_call("broadcast", lambda x: functional.broadcast(x, 0, GROUP) + 1, rows)
show_call("several", lambda x: functional.all_reduce_coalesced([x, x + 1], "max", GROUP), rows)
show_call("collectives in place", collectives, rows)
show_call("an asynchronous one", asynchronous, rows)
for kind in ("plain", "ddp", "fsdp"):
    show(f"{kind}", lambda compiled, kind=kind: losses(kind, True, compiled))
    show(f"{kind}, checkpoints", lambda compiled, kind=kind: losses(kind, False, compiled))
if DEVICE == "ahbm":

    def device_calls(x):
        x = x * torch.ahbm.device_count()
        stream, start = torch.ahbm.Stream(), torch.ahbm.Event(enable_timing=True)
        stream.wait_stream(torch.ahbm.current_stream())
        with torch.ahbm.stream(stream):
            x = x * 2
        stream.synchronize()
        start.record()
        torch.ahbm.synchronize()
        assert start.query()
        return x + torch.ahbm.current_device()

    show_call("functions of the device", device_calls, rows)
dist.destroy_process_group()
