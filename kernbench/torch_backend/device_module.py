"""`torch.ahbm` of PyTorch: the functions that PyTorch and scripts call on a device module."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch

from kernbench.torch_backend.generators import device_random
from runtime.torch import ahbm as low_level
from runtime.torch import streams
from runtime.torch.events import Event
from runtime.torch.streams import current_stream, default_stream, set_stream, stream
from runtime.torch.tensors.memory_statistics import (
    empty_cache,
    max_memory_allocated,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
)

__all__ = [
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_amp_supported_dtype",
    "get_device_properties",
    "get_rng_state",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "now_ns",
    "reset_peak_memory_stats",
    "set_device",
    "set_rng_state",
    "set_stream",
    "stream",
    "synchronize",
]

current_device = low_level.current_device
device_count = low_level.device_count
is_available = low_level.is_available
now_ns = low_level.now_ns


class DeviceStream(streams.Stream):
    """A stream of this rank's device. All streams have one priority; the argument is accepted, as
    PyTorch's FSDP passes it.
    """

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        """`RuntimeError` for a device of another rank."""
        del priority
        super().__init__(_number(device))


Stream = DeviceStream


def is_initialized() -> bool:
    """True: the rank has its device from the start."""
    return True


def _is_in_bad_fork() -> bool:
    return False


def set_device(device: Any) -> None:
    """Select the SIP of this rank; `RuntimeError` for another one."""
    low_level.set_device(_number(device))


def synchronize(device: Any = None) -> None:
    """Wait in simulated time until all commands of this rank are complete."""
    low_level.synchronize(_number(device))


def get_device_properties(device: Any = None) -> low_level.DeviceProperties:
    """The properties of a SIP."""
    return low_level.get_device_properties(_number(device))


@contextmanager
def device(given: Any) -> Generator[None]:
    """A `with` block for the SIP of this rank; `RuntimeError` for another one."""
    set_device(given)
    yield


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that autocast may lower to."""
    return [torch.float16, torch.bfloat16]


def manual_seed(seed: int) -> None:
    """Seed the generator of this rank's device."""
    device_random().seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generator of this rank's device: a rank has one."""
    manual_seed(seed)


def get_rng_state(device: Any = None) -> torch.Tensor:
    """The state of the generator of this rank's device."""
    del device
    return device_random().state()


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    """Set the state of the generator of this rank's device."""
    del device
    device_random().restore(state)


def _number(device: Any) -> int | None:
    if device is None or isinstance(device, int):
        return device
    return torch.device(device).index
