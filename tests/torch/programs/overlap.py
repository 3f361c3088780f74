"""The simulated time of a product, of an all-reduce, of both in turn and of both at once."""

import sys
from collections.abc import Callable

import torch
import torch.distributed as dist

dist.init_process_group("ahbm")
a, b = (torch.ones(256, 256, device="ahbm") for _ in range(2))
c, gradients = torch.empty_like(a), torch.ones(1 << 16, device="ahbm")


def timed(function: Callable[[], object]) -> int:
    """The nanoseconds of the second call; the first one maps memory."""
    for _ in range(2):
        torch.ahbm.synchronize()
        started = torch.ahbm.now_ns()
        function()
        torch.ahbm.synchronize()
    return round(torch.ahbm.now_ns() - started)


def product() -> None:
    torch.mm(a, b, out=c)


def reduced() -> None:
    dist.all_reduce(gradients)


def in_turn() -> None:
    dist.all_reduce(gradients)
    product()


def at_once() -> None:
    work = dist.all_reduce(gradients, async_op=True)
    product()
    work.wait()


times = [timed(each) for each in (product, reduced, in_turn, at_once)]
sys.stdout.write(f"= {times} of rank {dist.get_rank()}\n")
