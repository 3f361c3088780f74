"""Triton kernels on tensors of the device: `kernel[grid](x, y, n, BLOCK=1024)`.

Programs are numbered with axis 0 fastest. If the largest tensor of a launch lies on as many PEs as
there are programs, program p of n runs on the PE that holds the byte at p / n of it, else the
programs are dealt to all PEs of the SIP, in blocks of neighbours: tensors that lie on all PEs have
their shares in the same order.
"""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, cast

from torch import Tensor

from kernbench.torch_backend.aten.operators import CALLS
from kernbench.torch_backend.launching.launches import pointer_of, window_of
from kernbench.torch_backend.own_kernels.kernel_launch import first_programs
from kernbench.torch_backend.runtime.element_types import hardware_type
from kernbench.torch_backend.runtime.late_patches import patch_when_imported
from kernbench.torch_backend.runtime.pytorch_api import DEVICE
from kernbench.torch_backend.runtime.storages import storages
from runtime.core.device import Handle
from runtime.core.program_grid import ProgramGrid
from runtime.device.ahbm import synchronize
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.launches.launch import launch_on
from runtime.device.regions.regions import Pe


def register_triton() -> None:
    """Launch Triton kernels with tensors of the device there, from the import of Triton on."""
    patch_when_imported("triton.runtime.interpreter", _patch_interpreter)
    patch_when_imported("triton.runtime.autotuner", _patch_autotuner)
    patch_when_imported("triton.runtime.driver", _patch_driver)


def _patch_interpreter(module: ModuleType) -> None:
    _patch_run(module.InterpretedFunction)


def _patch_autotuner(module: ModuleType) -> None:
    _patch_run(module.Autotuner)


def _patch_run(kernel: Any) -> None:
    run = kernel.run

    def replaced(self: Any, *given: Any, grid: Any, warmup: bool = False, **options: Any) -> Any:
        if warmup:
            return None
        if not any(_is_on_device(each) for each in (*given, *options.values())):
            return run(self, *given, grid=grid, warmup=warmup, **options)
        launch_triton(self, given, options, grid)
        return None

    kernel.run = replaced


def _is_on_device(value: object) -> bool:
    if isinstance(value, Tensor):
        return value.device.type == DEVICE
    base = getattr(value, "base", None)
    return isinstance(base, Tensor) and base.device.type == DEVICE


def _patch_driver(module: ModuleType) -> None:
    """Scripts get the device from the active driver: it is that of the simulation."""
    from kernbench.torch_backend.own_kernels.triton_driver import SimulatedDriver, register_driver

    register_driver()
    module.driver.set_active(SimulatedDriver())


def launch_triton(
    kernel: Any, given: Sequence[Any], options: Mapping[str, Any], grid: Any
) -> Handle:
    """Queue a kernel with its grid."""
    from kernbench.triton.launching import launched
    from kernbench.triton.triton_call import TritonCall

    handle = launched(TritonCall(kernel, given, options, grid), _queue, timed=time_ps)
    assert isinstance(handle, Handle)
    return handle


def time_ps(start: Callable[[], Handle]) -> int:
    """The simulated time of a launch on its PEs, for which the host waits."""
    handle = start()
    synchronize()
    return handle.pe_exec_ps


def _queue(kernel: Any, given: Sequence[Any], grid: ProgramGrid) -> Handle:
    from kernbench.triton.element_report import ElementReport

    name, tensors = kernel.__name__, list[DeviceTensor]()

    def passed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(passed, cast("tuple[Any, ...]", value)))
        if not isinstance(value, Tensor):
            return kernel.host_argument(value, passed)
        _check(name, value)
        window = window_of(value)
        tensors.append(window.window)
        return pointer_of(window)

    arguments = tuple(passed(each) for each in given)
    programs, pes = _dealt(tensors, grid)
    CALLS[f"triton::{name}"] += 1
    ElementReport.note(kernel)
    handle = launch_on(name, kernel, arguments, tensors, pes, grid=programs)
    if (known := storages().integers) is not None:
        for each in given:
            if isinstance(each, Tensor):
                known.write(each, None)
    return handle


def _check(kernel: str, tensor: Tensor) -> None:
    if tensor.device.type != DEVICE:
        raise ValueError(
            f"kernel {kernel!r}: a tensor of shape {tuple(tensor.shape)} is on "
            f"{str(tensor.device)!r}, and the kernel runs on {DEVICE!r}; pass x.to({DEVICE!r})"
        )
    try:
        hardware_type(tensor.dtype)
    except KeyError:
        raise TypeError(
            f"kernel {kernel!r}: a tensor of shape {tuple(tensor.shape)} has elements of "
            f"{tensor.dtype}, which the hardware has not"
        ) from None


def _dealt(tensors: Sequence[DeviceTensor], grid: ProgramGrid) -> tuple[ProgramGrid, list[Pe]]:
    """The grid with the first program of each PE, and these PEs."""
    topology = storages().state.topology
    count, every = grid.count, topology.cubes * topology.pes_per_cube
    largest = max(tensors, key=lambda each: each.nbytes, default=None)
    if largest is not None and len(largest.shards) >= min(count, every):
        first = first_programs(largest, count)
    else:
        used = min(count, every)
        first = {
            divmod(number * every // used, topology.pes_per_cube): -(-number * count // used)
            for number in range(used)
        }
    return ProgramGrid(grid.lengths, tuple(first.values())), list(first)
