"""The driver by which scripts of Triton get their device and its properties."""

from typing import Any

import torch

from kernbench.torch_backend.runtime.pytorch_api import DEVICE
from runtime.device.ahbm import current_device, synchronize
from runtime.device.rank.properties import get_device_properties
from runtime.device.streams.events import Event


class _Utilities:
    """Queries of the device."""

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        """The PEs of the SIP as multiprocessors, and the scratch of one as its shared memory."""
        del device
        properties = get_device_properties()
        return {
            "multiprocessor_count": properties.pe_count,
            "max_num_regs": 1 << 16,
            "max_shared_mem": properties.kernel_scratch_bytes_per_pe,
            "warpSize": 32,
            "sm_clock_rate": 1_000_000,
            "mem_clock_rate": 1_000_000,
            "mem_bus_width": 2048,
        }


class NoCompiler:
    """The compiler of Triton's backend for the device, which compiles nothing."""

    def __init__(self, target: Any) -> None:
        self._target = target

    @staticmethod
    def supports_target(target: Any) -> bool:
        """Whether the target is the device."""
        return target.backend == DEVICE

    def hash(self) -> str:
        """A name for caches."""
        return DEVICE


class SimulatedDriver:
    """Triton's active driver: the device is that of the rank."""

    def __init__(self) -> None:
        self.utils = _Utilities()

    @staticmethod
    def is_active() -> bool:
        """True: it is the only driver of a run."""
        return True

    def get_current_device(self) -> int:
        """The number of the device."""
        return current_device()

    def get_active_torch_device(self) -> torch.device:
        """The device of tensors."""
        return torch.device(DEVICE, self.get_current_device())

    def get_current_stream(self, device: object = None) -> int:
        """The number of the stream."""
        del device
        return 0

    def get_current_target(self) -> Any:
        """No compiler runs, so the target is a name."""
        from kernbench.triton import triton_api

        target = triton_api.module("triton.backends.compiler").GPUTarget
        return target(DEVICE, "pe", 32)

    def get_device_interface(self) -> Any:
        """The module of the device."""
        return torch.get_device_module(DEVICE)

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """A tensor that a benchmark clears: there are no caches."""
        return torch.empty(1, dtype=torch.int32, device=DEVICE)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """Nothing: there are no caches."""

    def get_benchmarker(self) -> Any:
        """Simulated milliseconds of a call."""

        def benchmark(call: Any, quantiles: Any = None, **_: object) -> Any:
            begin, end = (Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            synchronize()
            time_ms = begin.elapsed_time(end)
            return time_ms if quantiles is None else [time_ms] * len(quantiles)

        return benchmark


def register_driver() -> None:
    """Add the device to the backends of Triton, of which PyTorch selects the active one."""
    from kernbench.triton import triton_api

    backends = triton_api.module("triton.backends")
    backends.backends[DEVICE] = backends.Backend(NoCompiler, SimulatedDriver)
