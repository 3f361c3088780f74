"""Launches of generated kernels: their blocks, their grid, and `max-autotune` in simulated time."""

from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from torch import Tensor

from kernbench.torch_backend.inductor.block_sizes import (
    DeviceSizes,
    KernelSizes,
    block_sizes,
    nearby_sizes,
)
from kernbench.torch_backend.inductor.graph_report import GraphReport
from kernbench.torch_backend.own_kernels.triton_launch import launch_triton, time_ps
from kernbench.torch_backend.runtime.pytorch_api import DEVICE, replace
from runtime.device.rank.properties import get_device_properties

_TRIALS = 6
"""The block sizes that `max-autotune` times."""
_AXES = (("x", "XBLOCK"), ("y", "YBLOCK"), ("z", "ZBLOCK"))
_REDUCED = (("r0_", "R0_BLOCK"), ("r1_", "R1_BLOCK"))


def patch_launches(heuristics: ModuleType) -> None:
    """Launch kernels of the device by this module."""

    def wrap(run: Any) -> Any:
        def replaced(self: Any, *given: Any, stream: Any, **options: Any) -> Any:
            if self.device_props.type != DEVICE:
                return run(self, *given, stream=stream, **options)
            return launch_generated(self, given)

        return replaced

    replace(heuristics.CachingAutotuner, "run", wrap)


def launch_generated(kernel: Any, given: Sequence[Any]) -> None:
    """Queue a generated kernel."""
    launch = _GeneratedLaunch(kernel, given)
    if not all(launch.sizes.parallel.values()):
        return
    GraphReport.of_rank().launches[kernel.fn.__name__] += 1
    launch.queue(launch.best())


class _GeneratedLaunch:
    def __init__(self, kernel: Any, given: Sequence[Any]) -> None:
        self._kernel, self._given = kernel, given
        signature = kernel.triton_meta["signature"]
        self._constants = [name for name, kind in signature.items() if kind == "constexpr"]
        names = [name for name in signature if name not in self._constants]
        self._named = dict(zip(names, given, strict=False))
        self.sizes = self._sizes()

    def _sizes(self) -> KernelSizes:
        meta, constants = self._kernel.inductor_meta, set(self._constants)
        numbers = {
            axis: int(self._named[f"{axis}numel"])
            for axis, _ in (*_AXES, *_REDUCED)
            if f"{axis}numel" in self._named
        }
        kept = 1
        for axis, block in _REDUCED:
            if axis in numbers and block not in constants:
                kept *= 1 << (numbers[axis] - 1).bit_length()
        return KernelSizes(
            parallel={
                block: numbers[axis]
                for axis, block in _AXES
                if axis in numbers and block in constants
            },
            reduced={
                block: numbers[axis]
                for axis, block in _REDUCED
                if axis in numbers and block in constants
            },
            kept=kept,
            values=2 + meta.get("num_load", 1) + meta.get("num_store", 1),
        )

    def best(self) -> Mapping[str, int]:
        """The blocks of the launch."""
        meta = self._kernel.inductor_meta
        if not (meta.get("max_autotune") or meta.get("max_autotune_pointwise")):
            return block_sizes(self.sizes, _device())
        known = self._kernel.__dict__.setdefault("timed_blocks", {})
        key = (*self.sizes.parallel.values(), *self.sizes.reduced.values())
        if key not in known:
            known[key] = self._fastest()
        return known[key]

    def _fastest(self) -> Mapping[str, int]:
        choices = nearby_sizes(self.sizes, _device(), _TRIALS)
        if len(choices) == 1:
            return choices[0]
        written = [
            each
            for name, each in self._named.items()
            if name in self._kernel.mutated_arg_names and isinstance(each, Tensor)
        ]
        kept = [each.clone() for each in written]
        times = list[tuple[int, int]]()
        for number, blocks in enumerate(choices):
            times.append((time_ps(lambda blocks=blocks: self.queue(blocks)), number))
            for tensor, before in zip(written, kept, strict=True):
                tensor.copy_(before)
        fastest_ps, number = min(times)
        shown = ", ".join(f"{name}={each}" for name, each in choices[number].items())
        print(
            f"autotune: {self._kernel.fn.__name__}: {shown}: {fastest_ps / 1000:,.3f} ns, the "
            f"fastest of {len(choices)}",
            flush=True,
        )
        return choices[number]

    def queue(self, blocks: Mapping[str, int]) -> Any:
        """Queue the kernel with blocks."""
        kernel = self._kernel
        (first, *_) = kernel.configs
        given = {**first.kwargs, **blocks}
        constants = {name: given[name] for name in self._constants if name in given}
        arguments, grid = kernel._interpret_args_grid(  # noqa: SLF001 - no public name
            tuple(self._given), type(first)(constants)
        )
        return launch_triton(kernel.fn, arguments, constants, grid)


@cache
def _device() -> DeviceSizes:
    properties = get_device_properties()
    return DeviceSizes(properties.pe_count, properties.kernel_scratch_bytes_per_pe)
