"""`torch.accelerator`: the device-neutral names of `torch.ahbm`."""

from typing import TYPE_CHECKING, NoReturn

from runtime.core.errors import absent_attribute
from runtime.device.ahbm import current_device as current_device_index
from runtime.device.ahbm import device_count, synchronize
from runtime.device.ahbm import set_device as set_device_index

__all__ = ["current_device_index", "device_count", "set_device_index", "synchronize"]


if not TYPE_CHECKING:
    # With this function in sight, a type checker would accept every attribute.
    def __getattr__(name: str) -> NoReturn:
        raise absent_attribute("torch.accelerator", name, __all__)
