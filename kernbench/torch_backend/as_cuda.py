"""`--as-cuda`: a script for GPUs runs unchanged, with the simulated device in place of CUDA.

What a script names is mapped; what it gets are tensors of `ahbm`:

- a device "cuda" or "cuda:1", as text or as `torch.device`, in every function and method of
  PyTorch, in `with torch.device`, autocast, gradient scaling, `DeviceMesh`, `torch.load` and
  `safetensors`;
- `x.cuda()` and `model.cuda()`, and `x.is_cuda` of a tensor of the device;
- the functions of `torch.cuda` which `torch.ahbm` has under the same names;
- the backend "nccl" of process groups.

All else of CUDA (graphs, NVTX, extensions, other functions of `torch.cuda`) raises what PyTorch
raises in a build without CUDA. The device of a tensor reads "ahbm".
"""

import functools
import re
from collections.abc import Callable
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import device_mesh, distributed_c10d
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from kernbench.torch_backend import device_module
from kernbench.torch_backend.aten.operators import DEVICE
from kernbench.torch_backend.runtime.late_patches import patch_when_imported
from kernbench.torch_backend.runtime.pytorch_api import RUN_BACKWARD, replace, restored_at

NOTE = (
    "kernbench: --as-cuda: 'cuda' in this script is the simulated device 'ahbm', and 'nccl' its "
    "backend"
)
_NAME = re.compile(r"cuda(:\d+)?")
_IS_CUDA = cast(Any, Tensor.is_cuda).__get__
"""Cast, since the stub has the type of the value: a mode is called with the descriptor."""
_BACKENDS = re.compile(r"\bnccl\b|\bcuda\b")


def renamed(value: Any) -> Any:
    """A device "cuda" as one of the simulated device; any other value unchanged."""
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device(str(value).replace("cuda", DEVICE))
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value.replace("cuda", DEVICE)
    return value


class CudaNames(TorchFunctionMode):
    """Maps the devices in the arguments of all functions and methods of PyTorch."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call the function with the devices of the simulation."""
        del types
        given = [renamed(each) for each in args]
        options = {name: renamed(value) for name, value in (kwargs or {}).items()}
        if func is Tensor.cuda:
            return given[0].to(options.pop("device", None) or _device(given[1:2]), **options)
        if func == _IS_CUDA:
            return given[0].device.type == DEVICE
        return func(*given, **options)


def _device(given: list[Any]) -> Any:
    index = given[0] if given else None
    return torch.device(DEVICE, index) if isinstance(index, int) else index or DEVICE


def map_cuda() -> None:
    """Map the names of CUDA from here on."""
    for name in device_module.__all__:
        # `torch.cuda.stream` and such; the time of the simulation has no counterpart.
        if hasattr(torch.cuda, name):
            setattr(torch.cuda, name, getattr(device_module, name))
    torch.cuda.init = lambda: None
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    # What is no function of tensors reaches no mode.
    profile = torch.autograd.profiler.profile
    named = (torch.autocast, torch.amp.GradScaler, device_mesh.DeviceMesh, DeviceContext, profile)
    for owner in named:
        replace(owner, "__init__", _renaming)
    torch.GradScaler = torch.amp.GradScaler
    for owner in (device_mesh, dist):
        replace(owner, "init_device_mesh", _renaming)
    for owner in (distributed_c10d, dist):
        for name in ("init_process_group", "new_group"):
            replace(owner, name, _with_backend)
    dist.is_nccl_available = distributed_c10d.is_nccl_available = lambda: True
    patch_when_imported("safetensors", lambda module: replace(module, "safe_open", _renaming))
    # Before the entry of CUDA itself, which has the priority 20.
    torch.serialization.register_package(9, lambda _: None, _loaded)
    names = CudaNames()
    # A function that is called by the mode runs without it: so would the gradients which the script
    # has written.
    for owner in (torch.autograd, torch.autograd.graph):
        replace(owner, RUN_BACKWARD, functools.partial(_within, names))
    names.__enter__()


def _within(names: CudaNames, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        with names:
            return function(*given, **options)

    return call


def _renaming(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        return function(
            *map(renamed, given), **{name: renamed(value) for name, value in options.items()}
        )

    return call


def _with_backend(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes a backend, as text such as "cpu:gloo,cuda:nccl", and devices."""

    @functools.wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        if given and isinstance(given[0], str):
            given = (_backend(given[0]), *given[1:])
        if isinstance(options.get("backend"), str):
            options["backend"] = _backend(options["backend"])
        return function(*given, **{name: renamed(value) for name, value in options.items()})

    return call


def _backend(text: str) -> str:
    # The backend of the simulation takes tensors of the host as well.
    return DEVICE if _BACKENDS.search(text) else text


def _loaded(storage: Any, location: str) -> Any:
    if not _NAME.fullmatch(location):
        return None
    return restored_at(storage, renamed(location))
