"""`torch.distributed` on the fabric of the accelerator, with the backend `ahbm`."""

from typing import TYPE_CHECKING, NoReturn

from runtime.core.errors import absent_attribute
from runtime.device import collectives
from runtime.device.collectives import *  # noqa: F403 - the names are those of the device's room
from runtime.torch.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]
__all__ += collectives.__all__


if not TYPE_CHECKING:
    # With this function in sight, a type checker would accept every attribute.
    def __getattr__(name: str) -> NoReturn:
        raise absent_attribute("torch.distributed", name, __all__)
