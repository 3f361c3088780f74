"""Preparation of the rank programs of studies, before the part that is timed."""

from kernbench import torch
from runtime.torch.tensors.tensor import Tensor


def map_tensors(*tensors: Tensor, queues: str | None = None) -> None:
    """Launch a kernel without a command: it maps the pages of its tensors, and `queues` are
    installed.
    """
    torch.launch("map", _no_operation, *tensors, queues=queues)


def meet() -> None:
    """Wait for the commands of all ranks; the ranks go on at about the same time."""
    # The ranks leave the first barrier at different times, since they arrive far apart.
    for _ in range(2):
        torch.ahbm.synchronize()
        torch.distributed.barrier()
    torch.ahbm.synchronize()


def _no_operation(*_: object) -> None:
    pass
