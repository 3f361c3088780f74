"""Functions of parts of PyTorch that few scripts import, replaced when they are imported.

- `flex_attention` takes tensors of the device; PyTorch lists the devices that it has tested.
- `context_parallel` and symmetric memory are refused on the device, with what to write instead.

An import of these parts takes up to seconds, so no script without them pays for it.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

import torch

from kernbench.torch_backend.runtime.pytorch_api import DEVICE, replace

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


def patch_when_imported(name: str, patch: Patch) -> None:
    """Call `patch` with a module, now or when it is imported; one patch for each module."""
    module = sys.modules.get(name)
    if module is None:
        sys.meta_path.insert(0, _PatchedImport(name, patch))
    else:
        patch(module)


class _PatchedImport(MetaPathFinder):
    """The import of one module, which is patched before any other module has its names."""

    def __init__(self, name: str, patch: Patch) -> None:
        self._name, self._patch = name, patch

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec, and None for any other module."""
        if fullname != self._name:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            replace(spec.loader, "exec_module", self._executing)
        return spec

    def _executing(self, execute: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
        def executed(module: ModuleType) -> None:
            execute(module)
            self._patch(module)

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
}
"""The functions by module."""
