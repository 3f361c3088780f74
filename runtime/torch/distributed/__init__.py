"""`torch.distributed` on the fabric of the accelerator, with the backend `ahbm`."""

from typing import TYPE_CHECKING, NoReturn

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
from runtime.torch.absent import absent_attribute
from runtime.torch.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)

__all__ = [
    "BACKEND",
    "GroupMember",
    "P2POp",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
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
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
]


if not TYPE_CHECKING:
    # With this function in sight, a type checker would accept every attribute.
    def __getattr__(name: str) -> NoReturn:
        raise absent_attribute("torch.distributed", name, __all__)
