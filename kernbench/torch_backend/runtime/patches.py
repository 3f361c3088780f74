"""Functions of PyTorch which the backend replaces in the process of a rank.

- `Module.to` and such keep the identity of parameters, as on GPUs.
- Sparse tensors of the device are refused.
- PyTorch's compiler leaves the import of Triton to scripts with kernels.
- `torch.load` makes storages of the device whose elements come later.
- The ranges of `torch.profiler.record_function` appear in the trace of the run, in simulated time.
  PyTorch's own profiler measures wall time, that of the simulator. A range in the trace has the
  time that the device spends on the commands which were submitted in it.
"""

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import nn
from torch.autograd.profiler import record_function

from kernbench.torch_backend.runtime.pytorch_api import (
    CONVERT,
    DEVICE,
    IS_SAVED_EMPTY,
    OpOverload,
    replace,
)
from runtime.device.rank.rank_state import current_rank

Become = Callable[[torch.Tensor, torch.Tensor], None]
"""Gives a tensor the elements and the device of another one."""
_PLAIN = (torch.Tensor, nn.Parameter)
_utils: Any = torch.utils
"""Untyped: the stub has no types of `swap_tensors`."""


def keep_parameters(become: Become) -> None:
    """Let parameters `become` those of another device in `Module.to` and such.

    Else PyTorch makes new ones, since elements of a CPU cannot be set to those of such a device:
    optimisers would not have them, and layers that share a weight would have one each. PyTorch's
    own switch for it would also hold for `load_state_dict`, which copies on all devices. It swaps
    the contents of two tensors, and refuses one with weak references, such as a compiled function
    and a profiler have, or of which C++ has another reference.
    """
    replace(nn.Module, CONVERT, functools.partial(_keeping, become))


def _keeping(become: Become, convert: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    swap: Become = _utils.swap_tensors

    def exchange(kept: torch.Tensor, converted: torch.Tensor) -> None:
        if type(kept) in _PLAIN and type(converted) in _PLAIN:
            become(kept, converted)
        else:
            swap(kept, converted)

    @functools.wraps(convert)
    def converted(self: nn.Module, *given: Any, **options: Any) -> nn.Module:
        flags = torch.__future__
        before, swap_before = flags.get_swap_module_params_on_conversion(), _utils.swap_tensors
        flags.set_swap_module_params_on_conversion(True)
        _utils.swap_tensors = exchange
        try:
            return convert(self, *given, **options)
        finally:
            flags.set_swap_module_params_on_conversion(before)
            _utils.swap_tensors = swap_before

    return converted


def leave_triton_to_scripts() -> None:
    """PyTorch's compiler, which optimisers import, imports Triton only where a script has done so.

    The import takes 0.2 s. At the end of a rank, whose objects are frozen, nanobind would print all
    of Triton as leaked.
    """
    package = importlib.import_module("torch.utils._triton")
    replace(package, "has_triton_package", lambda _: lambda: sys.modules.get("triton") is not None)


def refuse_sparse(operator: OpOverload, *_: Any, **__: Any) -> NoReturn:
    """The fallback of operators with sparse tensors of the device: `NotImplementedError`."""
    raise NotImplementedError(
        f"{operator.name()}: {DEVICE!r} has no sparse tensors: pass dense ones (x.to_dense()), "
        "compute with sparse ones on the CPU, or omit sparse=True of an embedding"
    )


_PRIORITY = 19
"""Priority before the entry of PyTorch for such devices, which has 23; each has its own."""


def register_loading() -> None:
    """Add what PyTorch's entry for such devices lacks."""
    torch.serialization.register_package(_PRIORITY, lambda _: None, _empty)


def _empty(storage: Any, location: str) -> Any:
    """A storage of which the elements come later, as in pickles: PyTorch would copy the memory of
    the host as it happens to be, which differs in each run. None for any other one.
    """
    if location.partition(":")[0] == DEVICE and getattr(storage, IS_SAVED_EMPTY, False):
        return torch.UntypedStorage(storage.nbytes(), device=location)
    return None


def record_ranges() -> None:
    """Report the ranges of all `record_function` blocks, PyTorch's own included."""
    replace(record_function, "__enter__", _beginning)
    replace(record_function, "__exit__", _ending)


def _beginning(enter: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(enter)
    def entered(self: Any) -> Any:
        # A thread that loads data is outside of the program.
        if state := current_rank.get(None):
            state.device.ranges.begin(self.name, state.device.now_ps)
        return enter(self)

    return entered


def _ending(leave: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(leave)
    def left(self: Any, *given: Any) -> Any:
        if state := current_rank.get(None):
            state.device.ranges.end(state.device.now_ps)
        return leave(self, *given)

    return left
