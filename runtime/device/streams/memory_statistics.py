"""The memory of the tensors of a rank: the bytes in use, their peak, and the cache."""

from runtime.device.rank.rank_state import running_rank
from runtime.device.rank.tensor_memory import TensorMemory
from runtime.device.streams.device import check_device, device

_Device = device | str | int | None


def memory_allocated(device: _Device = None) -> int:
    """Bytes of the tensors of this rank in all HBM slices; every replica counts."""
    return _memory("memory_allocated", device).allocated_bytes


def max_memory_allocated(device: _Device = None) -> int:
    """The most that `memory_allocated` was since the start or `reset_peak_memory_stats`."""
    return _memory("max_memory_allocated", device).peak_bytes


def memory_reserved(device: _Device = None) -> int:
    """Bytes of the tensors, and of memory that is kept for later ones."""
    return _memory("memory_reserved", device).reserved_bytes


def reset_peak_memory_stats(device: _Device = None) -> None:
    """Count `max_memory_allocated` from now on."""
    _memory("reset_peak_memory_stats", device).reset_peak()


def empty_cache() -> None:
    """Free the memory that is kept for later tensors, after a synchronisation if there is any."""
    running_rank().memory.empty_cache()


def _memory(function: str, given: _Device) -> TensorMemory:
    check_device(function, given)
    return running_rank().memory
