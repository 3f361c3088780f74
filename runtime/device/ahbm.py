"""`torch.ahbm`: the device of a rank, which is the SIP with the number of the rank."""

from typing import TYPE_CHECKING, NoReturn

from runtime.core.errors import absent_attribute
from runtime.device.rank.properties import DeviceProperties, get_device_properties
from runtime.device.rank.rank_state import running_rank
from runtime.device.streams.device import check_device
from runtime.device.streams.events import Event
from runtime.device.streams.memory_statistics import (
    empty_cache,
    max_memory_allocated,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
)
from runtime.device.streams.profiler import profile
from runtime.device.streams.streams import (
    Stream,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

__all__ = [
    "DeviceProperties",
    "Event",
    "Stream",
    "cube_count",
    "current_device",
    "current_stream",
    "default_stream",
    "device_count",
    "elapsed_ps",
    "empty_cache",
    "get_device_properties",
    "has_data",
    "is_available",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "now_ns",
    "profile",
    "reset_peak_memory_stats",
    "set_device",
    "set_stream",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """True: every rank has a device."""
    return True


def set_device(device: object) -> None:
    """Select the SIP of this rank, by its number, as "ahbm:1" or as `torch.device`; `RuntimeError`
    for another one, which a rank cannot access.
    """
    check_device("set_device", device)


def current_device() -> int:
    """The SIP of this rank."""
    return running_rank().rank


def device_count() -> int:
    """The number of SIPs in the system."""
    return running_rank().topology.sips


def synchronize(device: object = None) -> None:
    """Wait in simulated time until all commands of all streams of this rank are complete.
    `RuntimeError` for the device of another rank.
    """
    check_device("synchronize", device)
    running_rank().device.synchronize()


def elapsed_ps() -> int:
    """The simulated time of this rank in picoseconds."""
    return running_rank().device.now_ps


def now_ns() -> float:
    """The simulated time of this rank in nanoseconds."""
    return elapsed_ps() / 1000


def cube_count() -> int:
    """The number of cubes of this SIP that are not down."""
    return running_rank().pes.cubes


def has_data() -> bool:
    """Whether the tensors of this run have elements; False with `--no-data`."""
    return running_rank().data


if not TYPE_CHECKING:
    # With this function in sight, a type checker would accept every attribute.
    def __getattr__(name: str) -> NoReturn:
        raise absent_attribute("torch.ahbm", name, __all__)
