"""`torch.distributed` on the accelerator's own fabric: the backend is called `ahbm`."""

from typing import NoReturn

from runtime.ccl.reduction import ReduceOp
from runtime.core.errors import nearest
from runtime.torch.distributed.collectives import (
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_to_all_single,
    barrier,
    broadcast,
    reduce,
    reduce_scatter_tensor,
)
from runtime.torch.distributed.point_to_point import (
    P2POp,
    batch_isend_irecv,
    irecv,
    isend,
    recv,
    send,
)
from runtime.torch.distributed.process_group import (
    BACKEND,
    GroupMember,
    destroy_process_group,
    get_algorithm,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_initialized,
    new_group,
)
from runtime.torch.distributed.work import Work

__all__ = [
    "BACKEND",
    "GroupMember",
    "P2POp",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "destroy_process_group",
    "get_algorithm",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_initialized",
    "isend",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter_tensor",
    "send",
]


def __getattr__(name: str) -> NoReturn:
    """What PyTorch has and this does not: an error with the nearest of what is there."""
    raise AttributeError(f"torch.distributed on {BACKEND} has no {name!r}{nearest(name, __all__)}")
