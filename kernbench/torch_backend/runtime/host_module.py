"""`torch.ahbm` in the reduced mode: the time of the simulation. No device is available."""

from typing import NoReturn

from kernbench.torch_backend.runtime.no_device import NoDevice
from kernbench.torch_backend.runtime.pytorch_api import is_in_bad_fork
from runtime.device import ahbm as low_level

__all__ = [
    "device_count",
    "has_data",
    "is_available",
    "is_initialized",
    "manual_seed_all",
    "now_ns",
    "profile",
    "synchronize",
]

has_data = low_level.has_data
now_ns = low_level.now_ns
profile = low_level.profile
synchronize = low_level.synchronize
_is_in_bad_fork = is_in_bad_fork


def is_available() -> bool:
    """False: there are no tensors of the device."""
    return False


def is_initialized() -> bool:
    """False: there is no device."""
    return False


def device_count() -> int:
    """0: there is no device."""
    return 0


def manual_seed_all(seed: int) -> None:
    """Called by `torch.manual_seed`; the device has no generator to seed."""
    del seed


def __getattr__(name: str) -> NoReturn:
    # The import system looks for names of this form.
    if name.startswith("__"):
        raise AttributeError(name)
    raise NoDevice.error(f"torch.ahbm.{name}")
