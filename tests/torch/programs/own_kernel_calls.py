"""Calls of the kernels of `own_kernels.py`, by the name among the arguments: `times` prints the
simulated time behind each of some calls, `rows` and `view` call one, which no other command
follows, `integers` reads what a kernel has written, `sharded` calls one with distributed tensors.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from own_kernels import (
    add_rows,
    close,
    copied,
    extremes,
    greatest,
    norm_formula,
    numbers,
    of_both,
    rms_norm,
    scaled,
    silu,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import register_sharding


def times() -> None:
    x, weight = (numbers(*shape).to("ahbm").requires_grad_() for shape in ((300, 128), (128,)))
    for name, call in {
        "gradient of the formula": lambda: rms_norm(x, weight).sum().backward(),
        "gradient of a kernel": lambda: silu(x).sum().backward(),
        "two results": lambda: extremes(x),
        "a changed tensor": lambda: add_rows(x.detach(), x.detach()),
        "no grid": lambda: scaled(x, None),
        "other strides": lambda: copied(x.detach()[:40].t()) + rms_norm(x[:128].t(), weight).sum(),
    }.items():
        call()
        torch.ahbm.synchronize()
        print("=", name, torch.ahbm.now_ns(), flush=True)


def sharded() -> None:
    dist.init_process_group("ahbm")
    mesh = init_device_mesh("ahbm", (dist.get_world_size(),))

    @register_sharding(torch.ops.own.rms_norm.default)
    def _(x: Any, weight: Any, eps: float = 1e-6) -> list[Any]:
        return [([Shard(0)], [Shard(0), Replicate(), None])]

    (x, own_x), (weight, own_weight) = of_both(numbers(32, 64)), of_both(numbers(64))
    rows = distribute_tensor(own_x.detach(), mesh, [Shard(0)]).requires_grad_()
    scale = distribute_tensor(own_weight.detach(), mesh, [Replicate()]).requires_grad_()
    expected, result = norm_formula(x, weight), rms_norm(rows, scale)
    expected.square().sum().backward()
    result.square().sum().backward()
    assert result.placements == (Shard(0),)
    close(result.full_tensor().detach(), expected.detach())
    close(rows.grad.full_tensor(), x.grad, 1e-5)
    close(scale.grad.full_tensor(), weight.grad, 1e-5)
    sys.stdout.write(f"= rank {dist.get_rank()} ok\n")


def rows() -> None:
    silu(torch.zeros(256, 1024, device="ahbm"))


def view() -> None:
    extremes(torch.zeros(512, 1024, device="ahbm")[256:])


def integers() -> None:
    print("=", greatest(torch.eye(4, device="ahbm")).tolist())


CALLS: dict[str, Callable[[], None]] = {
    call.__name__: call for call in (times, rows, view, integers, sharded)
}


if __name__ == "__main__":
    (name,) = sys.argv[1:]
    CALLS[name]()
