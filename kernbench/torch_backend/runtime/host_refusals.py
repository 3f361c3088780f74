"""Parts of PyTorch that name the device without an operator: streams, events, generators, the
scaler of gradients and `torch.accelerator`.

In the reduced mode no C++ part answers for them: PyTorch makes objects that do nothing, or fails
in the place where the part is lacking. Each use of the device is `NoDeviceError` in their place;
uses of other devices are PyTorch's.
"""

import functools
import inspect
from typing import Any

import torch

from kernbench.torch_backend.aten.operators import DEVICE
from kernbench.torch_backend.runtime.device_streams import PRIVATE_USE
from kernbench.torch_backend.runtime.no_device import NoDevice

_ANSWERED = {"current_accelerator", "device_count", "is_available"}
"""Of `torch.accelerator`: what has an answer without a device."""


def refuse_parts_without_operators() -> None:
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
