"""`torch.accelerator`: the device-neutral names of `torch.ahbm`."""

from runtime.torch.ahbm import current_device as current_device_index
from runtime.torch.ahbm import device_count, synchronize
from runtime.torch.ahbm import set_device as set_device_index

__all__ = ["current_device_index", "device_count", "set_device_index", "synchronize"]
