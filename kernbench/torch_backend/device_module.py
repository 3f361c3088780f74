"""`torch.ahbm` of PyTorch: the functions that PyTorch and scripts call on a device module."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch import Tensor

from kernbench.torch_backend.aten.draws.random_operators import device_random
from kernbench.torch_backend.aten.operators import HostTime
from kernbench.torch_backend.runtime.device_memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_peak_memory_stats,
)
from kernbench.torch_backend.runtime.device_streams import (
    DeviceEvent,
    DeviceStream,
    current_stream,
    default_stream,
    own_index,
    set_stream,
    stream,
)
from kernbench.torch_backend.runtime.frame_hook import (
    constant_in_graphs,
    refused_in_graphs,
    untraced_methods,
)
from kernbench.torch_backend.runtime.pytorch_api import is_in_bad_fork
from runtime.core.errors import absent_attribute
from runtime.device import ahbm as low_level

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
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "has_data",
    "host_fallback_ns",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "now_ns",
    "profile",
    "reset_peak_memory_stats",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]

_CONSTANTS = (
    *("current_device", "device_count", "get_device_name", "has_data", "is_available"),
    *("is_bf16_supported", "is_initialized"),
)

current_device = low_level.current_device
device_count = low_level.device_count
has_data = low_level.has_data
is_available = low_level.is_available
now_ns = low_level.now_ns
profile = low_level.profile

_is_in_bad_fork = is_in_bad_fork
_initialized = True
"""Read by `torch.utils.checkpoint`, which then restores the random numbers of the device."""

Event = DeviceEvent
Stream = DeviceStream


class TorchDeviceProperties(low_level.DeviceProperties):
    """The properties of a SIP, by the names that PyTorch has for those of GPUs as well."""

    @property
    def total_memory(self) -> int:
        """Bytes of HBM."""
        return self.total_memory_bytes

    @property
    def multi_processor_count(self) -> int:
        """The number of PEs."""
        return self.pe_count


def is_initialized() -> bool:
    """True: the rank has its device from the start."""
    return True


def set_device(device: Any) -> None:
    """Select the SIP of this rank; `RuntimeError` for another one."""
    own_index("set_device", device)


def synchronize(device: Any = None) -> None:
    """Wait in simulated time until all commands of this rank are complete."""
    own_index("synchronize", device)
    low_level.synchronize()


def get_device_properties(device: Any = None) -> TorchDeviceProperties:
    """The properties of a SIP; all SIPs are equal."""
    index = device if device is None or isinstance(device, int) else torch.device(device).index
    return TorchDeviceProperties(**vars(low_level.get_device_properties(index)))


def get_device_name(device: Any = None) -> str:
    """The name of a SIP."""
    return get_device_properties(device).name


def is_bf16_supported() -> bool:
    """True: the engines read and write bfloat16."""
    return True


def host_fallback_ns() -> float:
    """The simulated time, in ns, that passed in operators on the host since the start."""
    return (HostTime.elapsed_ps + HostTime.drawn_ps) / 1000


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


def initial_seed() -> int:
    """The seed of the generator of this rank's device."""
    return device_random().initial_seed


def get_rng_state(device: Any = None) -> Tensor:
    """The state of the generator of this rank's device."""
    del device
    return device_random().state()


def set_rng_state(state: Tensor, device: Any = None) -> None:
    """Set the state of the generator of this rank's device."""
    del device
    device_random().restore(state)


def get_rng_state_all() -> list[Tensor]:
    """The states of the generators of a rank: it has one."""
    return [get_rng_state()]


def set_rng_state_all(states: list[Tensor]) -> None:
    """Set the states of the generators of a rank: it has one."""
    for state in states:
        set_rng_state(state)


def register_for_compilation() -> None:
    """Let `torch.compile` handle calls of this module as those of `torch.cuda`."""
    for name in __all__:
        value = globals()[name]
        if isinstance(value, type):
            untraced_methods(value)
        elif name in _CONSTANTS:
            constant_in_graphs(value)
        else:
            refused_in_graphs(value)


def __getattr__(name: str) -> NoReturn:
    raise absent_attribute("torch.ahbm", name, __all__)
