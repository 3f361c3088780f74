"""`torch.distributed` on the accelerator's own fabric: the backend is called `ahbm`."""

from runtime.ccl.reduction import ReduceOp
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
from runtime.torch.distributed.point_to_point import irecv, isend, recv, send
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
    init_process_group,
    is_initialized,
    new_group,
)
from runtime.torch.distributed.work import Work

__all__ = [
    "BACKEND", "GroupMember", "ReduceOp", "Work", "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all_single",
    "barrier", "broadcast", "destroy_process_group", "get_algorithm", "get_backend", "get_global_rank", "get_group_rank",
    "get_process_group_ranks", "get_rank", "get_world_size", "init_process_group", "irecv", "is_initialized", "isend",
    "new_group", "recv", "reduce", "reduce_scatter_tensor", "send",
]  # fmt: skip
