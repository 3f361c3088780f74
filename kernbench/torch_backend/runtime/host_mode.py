"""The reduced mode, without the C++ part: process groups of tensors of the host.

A device of PyTorch has its allocator, the resizing of its storages, its generators and its pinned
memory in C++; without them `torch.load` to the device faults, and FSDP2 frees no memory. So there
are no tensors of the device: every call that would make one raises `NoDeviceError`. Operators run
on the host, in no simulated time. Collectives and messages are those of the fabric, and the tensors
of the host pass through the memory of the device as in the full mode.
"""

from typing import Any, NoReturn

import torch

from kernbench.torch_backend.aten.operators import DEVICE
from kernbench.torch_backend.runtime import host_module
from kernbench.torch_backend.runtime.error_traces import omit_error_traces
from kernbench.torch_backend.runtime.host_refusals import refuse_parts_without_operators
from kernbench.torch_backend.runtime.no_device import NoDevice

_METHODS = ("ahbm", "pin_memory")
"""Of tensors: those which need the C++ part."""


class _Guard(torch._C._acc.DeviceGuard):  # noqa: SLF001 - PyTorch's interface for backends in Python
    """Lets calls for the device come as far as the operator, which then names the reason."""

    def type_(self) -> Any:
        """The kind of device."""
        return torch._C._autograd.DeviceType.PrivateUse1  # noqa: SLF001 - has no other access


class _Hooks(torch._C._acc.PrivateUse1Hooks):  # noqa: SLF001 - PyTorch's interface for backends in Python
    """A device that is not available, as that of PyTorch for CUDA in a machine without GPUs."""

    def is_built(self) -> bool:
        """False: it has no C++ part."""
        return False

    def is_available(self) -> bool:
        """False."""
        return False

    def has_primary_context(self, index: int) -> bool:
        """False."""
        del index
        return False


def connect_host(lacking: str) -> tuple[torch.library.Library, ...]:
    """Make the name of the device known, and each of its uses an error with what is `lacking`."""
    omit_error_traces()
    NoDevice.reason = lacking
    torch._register_device_module(DEVICE, host_module)  # noqa: SLF001 - PyTorch's interface for backends
    torch.utils.generate_methods_for_privateuse1_backend()
    acc = torch._C._acc  # noqa: SLF001
    acc.register_python_privateuseone_hook(_Hooks())
    acc.register_python_privateuseone_device_guard(_Guard())
    everything = torch.library.Library("_", "IMPL")
    everything.fallback(_refused, "PrivateUse1")
    for name in _METHODS:
        setattr(torch.Tensor, name, NoDevice.refusing(f"Tensor.{name}"))
    torch.nn.Module.ahbm = NoDevice.refusing("Module.ahbm")
    _refuse_storages()
    refuse_parts_without_operators()
    return (everything,)


def _refused(operator: torch._ops.OpOverload, *_: Any, **__: Any) -> NoReturn:
    raise NoDevice.error(str(operator.name()))


def _refuse_storages() -> None:
    """PyTorch would call the allocator that is not there."""
    make = torch.UntypedStorage.__new__

    def made(cls: type, *given: Any, **options: Any) -> Any:
        if "device" in options and torch.device(options["device"]).type == DEVICE:
            raise NoDevice.error("UntypedStorage")
        return make(cls, *given, **options)

    torch.UntypedStorage.__new__ = staticmethod(made)
