"""Functions of safetensors and of parts of PyTorch that few scripts import, replaced when these are
imported.

- `flex_attention` takes tensors of the device; PyTorch lists the devices that it has tested.
- `context_parallel` and symmetric memory are refused on the device, and remote procedure calls in
  every run, with what to write instead.
- `safetensors.safe_open` takes the device, whose name its compiled code does not list.

An import of these parts takes up to seconds, so no script without them pays for it.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, NoReturn

import torch

from kernbench.torch_backend.runtime.pytorch_api import DEVICE, replace
from runtime.device.rank.rank_state import running_rank

Patch = Callable[[ModuleType], None]
Wrap = Callable[[Any], Callable[..., Any]]
_RING = (
    f"context_parallel on {DEVICE!r}: PyTorch's ring attention calls flash kernels of CUDA; pass "
    "keys and values round the ring by batch_isend_irecv, as examples/torch/ring_attention.py does"
)
_SYMMETRIC = (
    f"symmetric memory on {DEVICE!r}: a rank has no address of the memory of another one; "
    "exchange tensors by collectives, send and recv"
)

_REMOTE = (
    "torch.distributed.rpc: a function that another rank calls would run in a thread, which has no "
    "device, at no simulated time; call it on the rank itself, and exchange tensors by send, recv "
    "and collectives"
)


def patch_when_imported(name: str, patch: Patch) -> None:
    """Call `patch` with a module, now or when it is imported, after earlier patches of it."""
    module = sys.modules.get(name)
    waiting = [each for each in sys.meta_path if isinstance(each, _PatchedImport)]
    same = next((each for each in waiting if each.name == name), None)
    if module is not None:
        patch(module)
    elif same is not None:
        same.patches.append(patch)
    else:
        sys.meta_path.insert(0, _PatchedImport(name, [patch]))


class _PatchedImport(MetaPathFinder):
    """The import of one module, which is patched before any other module has its names."""

    def __init__(self, name: str, patches: list[Patch]) -> None:
        self.name, self.patches = name, patches

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec, and None for any other module."""
        if fullname != self.name:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            replace(spec.loader, "exec_module", self._executing)
        return spec

    def _executing(self, execute: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
        def executed(module: ModuleType) -> None:
            execute(module)
            for patch in self.patches:
                patch(module)

        return executed


def register_late_patches() -> None:
    """Replace what this module lists."""
    for name, functions in _FUNCTIONS.items():
        patch_when_imported(name, partial(_patch, functions))


def _patch(functions: dict[str, Wrap], module: ModuleType) -> None:
    for name, wrap in functions.items():
        replace(module, name, wrap)


def _accepting(validate: Callable[..., None]) -> Callable[..., None]:
    def validated(query: torch.Tensor, *rest: torch.Tensor) -> None:
        if query.device.type != DEVICE:
            validate(query, *rest)

    return validated


def _refusing(text: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`NotImplementedError` for a call with a tensor, a mesh or a name of the device."""

    @wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        if any(_device_of(each) == DEVICE for each in (*given, *options.values())):
            raise NotImplementedError(text)
        return function(*given, **options)

    return call


def _refusing_all(text: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`NotImplementedError` for every call."""

    @wraps(function)
    def call(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(text)

    return call


def _opening(function: Callable[..., Any]) -> Callable[..., Any]:
    """The device by its number, which stands for that of the process; others unchanged."""

    @wraps(function, updated=())
    def opened(filename: Any, framework: Any, device: Any = "cpu", **options: Any) -> Any:
        if _device_of(device) == DEVICE:
            number = str(device).partition(":")[2]
            device = int(number) if number else running_rank().rank
        return function(filename, framework, device, **options)

    return opened


def _device_of(value: Any) -> str:
    if isinstance(value, str):
        return value.partition(":")[0]
    if isinstance(value, torch.device):
        return value.type
    if isinstance(value, torch.Tensor):
        return value.device.type
    return str(getattr(value, "device_type", ""))


_EXPERIMENTAL = "torch.distributed.tensor.experimental"
_FUNCTIONS: dict[str, dict[str, Wrap]] = {
    "torch.nn.attention.flex_attention": {"_validate_device": _accepting},
    f"{_EXPERIMENTAL}._context_parallel._attention": {
        "context_parallel": partial(_refusing, _RING)
    },
    "torch.distributed._symmetric_memory": {
        name: partial(_refusing, _SYMMETRIC) for name in ("empty", "rendezvous")
    },
    "torch.distributed.rpc": {"init_rpc": partial(_refusing_all, _REMOTE)},
    "safetensors": {"safe_open": _opening},
}
"""The functions by module."""
