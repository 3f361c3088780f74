"""The reduced mode, without the C++ part: process groups of tensors of the host.

A device of PyTorch has its allocator, the resizing of its storages, its generators and its pinned
memory in C++; without them `torch.load` to the device faults, and FSDP2 frees no memory. So there
are no tensors of the device: every call that would make one raises `NoDeviceError`. Operators run
on the host, in no simulated time. Collectives and messages are those of the fabric, and the tensors
of the host pass through the memory of the device as in the full mode.

Streams, events, generators, the scaler of gradients and `torch.accelerator` name the device without
an operator. PyTorch would make objects that do nothing, or fail in the place where the C++ part is
lacking, so each use of the device is an error in their place; uses of other devices are PyTorch's.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.utils.backend_registration import generate_methods_for_privateuse1_backend

from kernbench.torch_backend.runtime import host_module
from kernbench.torch_backend.runtime.device_streams import PRIVATE_USE
from kernbench.torch_backend.runtime.error_traces import omit_error_traces
from kernbench.torch_backend.runtime.no_device import NoDevice
from kernbench.torch_backend.runtime.pytorch_api import (
    DEVICE,
    PRIVATE_USE_KIND,
    DeviceGuard,
    OpOverload,
    PrivateUse1Hooks,
    fall_back,
    register_device_module,
    register_in_python,
)

_METHODS = ((Tensor, "ahbm"), (Tensor, "pin_memory"), (torch.nn.Module, "ahbm"))
"""Methods which need the C++ part."""


class _Guard(DeviceGuard):
    """Lets calls for the device come as far as the operator, which then names the reason."""

    def type_(self) -> object:
        """The kind of device."""
        return PRIVATE_USE_KIND


class _Hooks(PrivateUse1Hooks):
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


def connect_host() -> tuple[torch.library.Library, ...]:
    """Make the name of the device known, and each of its uses the error of `NoDevice`."""
    omit_error_traces()
    register_device_module(DEVICE, host_module)
    generate_methods_for_privateuse1_backend()
    register_in_python(_Hooks(), _Guard())
    everything = torch.library.Library("_", "IMPL")
    fall_back(everything, _refused, "PrivateUse1")
    for owner, name in _METHODS:
        setattr(owner, name, NoDevice.refusing(f"{owner.__name__}.{name}"))
    _refuse_storages()
    _refuse_parts_without_operators()
    return (everything,)


def _refused(operator: OpOverload, *_: Any, **__: Any) -> NoReturn:
    raise NoDevice.error(str(operator.name()))


def _refuse_storages() -> None:
    """PyTorch would call the allocator that is not there."""
    make: Callable[..., Any] = torch.UntypedStorage.__new__

    def made(cls: type, *given: Any, **options: Any) -> Any:
        if "device" in options and torch.device(options["device"]).type == DEVICE:
            raise NoDevice.error("UntypedStorage")
        return make(cls, *given, **options)

    torch.UntypedStorage.__new__ = staticmethod(made)


_ANSWERED = {"current_accelerator", "device_count", "is_available"}
"""Functions of `torch.accelerator` that have an answer without a device."""


def _refuse_parts_without_operators() -> None:
    """Put classes and functions that refuse the device in the place of PyTorch's."""
    torch.Stream = _refusing("Stream", torch.Stream, DEVICE)
    torch.Event = _refusing("Event", torch.Event, DEVICE)
    torch.Generator = _refusing("Generator", torch.Generator, "cpu")
    for name in set(torch.accelerator.__all__) - _ANSWERED:
        setattr(torch.accelerator, name, NoDevice.refusing(f"torch.accelerator.{name}"))
    _refuse_scaler(torch.amp.GradScaler)


def _refusing(name: str, original: type, default: str) -> Any:
    """A class in the place of `original`, whose instances remain those of `original`; without a
    device it makes them for `default`.
    """

    class Refusing(type(original)):
        def __call__(cls, *given: Any, **options: Any) -> Any:
            if _is_of_device(given, options, default):
                raise NoDevice.error(f"torch.{name}")
            return (
                original(*given, **options) if cls is made else super().__call__(*given, **options)
            )

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, original) if cls is made else super().__instancecheck__(value)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, original) if cls is made else super().__subclasscheck__(other)

    made = Refusing(name, (original,), {"__module__": "torch", "__doc__": original.__doc__})
    return made


def _is_of_device(given: tuple[Any, ...], options: dict[str, Any], default: str) -> bool:
    if "device_type" in options:
        return options["device_type"] == PRIVATE_USE
    named = given[0] if given else options.get("device")
    if named is None:
        named = default
    # A number is that of a device of the accelerator, which is this device.
    return isinstance(named, int) or torch.device(named).type == DEVICE


def _refuse_scaler(scaler: Any) -> None:
    begin = scaler.__init__
    signature = inspect.signature(begin)

    @functools.wraps(begin)
    def begun(self: Any, *given: Any, **options: Any) -> None:
        call = signature.bind(self, *given, **options)
        call.apply_defaults()
        used = call.arguments
        if used["enabled"] and torch.device(used["device"]).type == DEVICE:
            raise NoDevice.error("GradScaler")
        begin(self, *given, **options)

    scaler.__init__ = begun
