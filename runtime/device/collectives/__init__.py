"""The collectives and messages of a rank, and the process groups that they run in."""

from runtime.ccl.reduction import ReduceOp
from runtime.device.collectives.exchanges import all_to_all, all_to_all_single
from runtime.device.collectives.gathers import (
    all_gather,
    all_gather_into_tensor,
    broadcast,
    gather,
    scatter,
)
from runtime.device.collectives.point_to_point import (
    P2POp,
    batch_isend_irecv,
    irecv,
    isend,
    recv,
    send,
)
from runtime.device.collectives.process_group import (
    BACKEND,
    GroupMember,
    destroy_process_group,
    get_algorithm,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_order,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_initialized,
    new_group,
)
from runtime.device.collectives.reductions import (
    all_reduce,
    barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
)
from runtime.device.collectives.work import Work

__all__ = [
    "BACKEND",
    "GroupMember",
    "P2POp",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "destroy_process_group",
    "gather",
    "get_algorithm",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_order",
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
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "send",
]
