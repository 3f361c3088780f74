"""`torch.ahbm`: the memory of the tensors of a rank, in bytes of simulated HBM."""

from typing import Any

import torch

from kernbench.torch_backend.runtime.device_streams import own_index
from runtime.device import ahbm as low_level
from runtime.device.rank.rank_state import running_rank
from runtime.device.rank.tensor_memory import TensorMemory


def memory_allocated(device: Any = None) -> int:
    """Bytes of the tensors that live."""
    return _memory("memory_allocated", device).allocated_bytes


def max_memory_allocated(device: Any = None) -> int:
    """The most that `memory_allocated` was since the start or `reset_peak_memory_stats`."""
    return _memory("max_memory_allocated", device).peak_bytes


def memory_reserved(device: Any = None) -> int:
    """Bytes of the tensors, and of memory that is kept for later ones."""
    return _memory("memory_reserved", device).reserved_bytes


def max_memory_reserved(device: Any = None) -> int:
    """The most that `memory_reserved` was since the start or `reset_peak_memory_stats`."""
    return _memory("max_memory_reserved", device).reserved_peak_bytes


def reset_peak_memory_stats(device: Any = None) -> None:
    """Count both peaks from now on."""
    _memory("reset_peak_memory_stats", device).reset_peak()


def empty_cache() -> None:
    """Free the memory that is kept for later tensors, after a synchronisation if there is any."""
    running_rank().memory.empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes of HBM that no tensor has reserved, and all bytes of HBM."""
    memory = _memory("mem_get_info", device)
    total = low_level.get_device_properties().total_memory_bytes
    return total - memory.reserved_bytes, total


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The statistics of PyTorch's allocators by name: `allocated_bytes`, `active_bytes`,
    `requested_bytes` and `reserved_bytes`, each for `all.current` and `all.peak`. What the device
    does not count is 0.
    """
    return torch.accelerator.memory_stats(own_index("memory_stats", device))


def memory_statistics() -> tuple[int, int, int, int]:
    """Bytes allocated and their peak, bytes reserved and their peak."""
    memory = running_rank().memory
    peaks = memory.peak_bytes, memory.reserved_peak_bytes
    return memory.allocated_bytes, peaks[0], memory.reserved_bytes, peaks[1]


def memory_summary(device: Any = None, *, abbreviated: bool = False) -> str:
    """A table of the memory in use and its peaks; unless `abbreviated`, of all memory as well."""
    _memory("memory_summary", device)
    allocated, peak, reserved, reserved_peak = memory_statistics()
    free, total = mem_get_info()
    title = f"memory of ahbm:{running_rank().rank}"
    lines = [
        f"{title:<16} {'now B':>20} {'peak B':>20}",
        f"{'allocated':<16} {allocated:>20,} {peak:>20,}",
        f"{'reserved':<16} {reserved:>20,} {reserved_peak:>20,}",
    ]
    if not abbreviated:
        lines += [f"{'free':<16} {free:>20,}", f"{'total':<16} {total:>20,}"]
    return "\n".join(lines)


def _memory(function: str, device: Any) -> TensorMemory:
    own_index(function, device)
    return running_rank().memory
