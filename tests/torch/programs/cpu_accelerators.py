"""CPUs with gloo in place of accelerators, for scripts that need those: a device of
`torch.accelerator`, a number or "cuda" is the CPU of the rank, and "nccl" is gloo.
"""

import os
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

CPU = torch.device("cpu")


def stand_in() -> None:
    """Replace what scripts call of accelerators."""
    accelerator, cuda = torch.accelerator, torch.cuda
    ranks = int(os.environ["WORLD_SIZE"])
    accelerator.is_available = cuda.is_available = lambda: True
    accelerator.device_count = cuda.device_count = lambda: ranks
    accelerator.current_accelerator = lambda **_: CPU
    accelerator.set_device_index = accelerator.device_index = cuda.set_device = lambda _: None
    for owner in (Tensor, nn.Module):
        owner.to = _on_cpu(owner.to)
    torch.load = _mapped(torch.load)
    dist.init_process_group = _by_gloo(dist.init_process_group)
    dist.distributed_c10d.init_process_group = dist.init_process_group
    torch.multiprocessing.spawn = _in_this_rank
    F.scaled_dot_product_attention = _of_shards(F.scaled_dot_product_attention)
    _without(DistributedDataParallel, "device_ids")
    _without(DataLoader, "pin_memory")


def _on_cpu(move: Callable[..., Any]) -> Callable[..., Any]:
    def moved(self: object, *given: Any, **options: Any) -> Any:
        to_number = bool(given) and type(given[0]) is int
        return move(self, *((CPU, *given[1:]) if to_number else given), **options)

    return moved


def _mapped(load: Callable[..., Any]) -> Callable[..., Any]:
    return lambda file, **options: load(file, **options | {"map_location": CPU})


def _by_gloo(start: Callable[..., None]) -> Callable[..., None]:
    """The ranks meet at the address of their launcher, not at that which the script writes."""
    address = {name: os.environ[name] for name in ("MASTER_ADDR", "MASTER_PORT")}

    def started(**_: object) -> None:
        os.environ.update(address)
        start("gloo")

    return started


def _in_this_rank(
    function: Callable[..., object], args: tuple[object, ...] = (), **_: object
) -> None:
    function(int(os.environ["RANK"]), *args)


def _of_shards(attend: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Heads on ranks: PyTorch has this form of attention for GPUs only."""

    def attention(q: Tensor, k: Tensor, v: Tensor, *given: Any, **options: Any) -> Tensor:
        if not isinstance(q, DTensor):
            return attend(q, k, v, *given, **options)
        local = attend(*(each.to_local() for each in (q, k, v)), *given, **options)
        return DTensor.from_local(local, q.device_mesh, q.placements)

    return attention


def _without(owner: type, option: str) -> None:
    """Let instances of a class be made without an option, which CPUs do not have."""
    make = owner.__init__

    def made(self: object, *given: Any, **options: Any) -> None:
        make(self, *given, **{name: each for name, each in options.items() if name != option})

    owner.__init__ = made
