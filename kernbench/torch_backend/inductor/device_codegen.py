"""The device as Inductor calls it: the generated code, the interface, the choice of kernels."""
# The stubs of Inductor have few types.
# pyright: reportUntypedBaseClass=false, reportUnknownMemberType=false

from typing import Any

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device
from torch._inductor import scheduler, utils
from torch._inductor.choices import InductorChoices
from torch._inductor.codegen.common import (
    BackendFeature,
    DeviceOpOverrides,
    register_backend_for_device,
    register_device_op_overrides,
)
from torch._inductor.codegen.triton import TritonScheduling
from torch._inductor.codegen.wrapper import PythonWrapperCodegen

from kernbench.torch_backend import device_module
from kernbench.torch_backend.inductor.graph_passes import DevicePasses
from kernbench.torch_backend.runtime.pytorch_api import DEVICE

_module: Any = device_module
_scheduler: Any = scheduler
_ABSENT = frozenset(
    {
        *(BackendFeature.SCAN, BackendFeature.SORT, BackendFeature.FOREACH),
        BackendFeature.TRITON_TEMPLATES,
    }
)
"""Scans and sorts are operators, lists of tensors are combo kernels; products have no templates."""
_PERSISTENT = 1 << 14
"""Elements of a row that a reduction keeps in TCM, so that it reads them once: 64 KiB of float32
for each value.
"""


class SimulatedScheduling(TritonScheduling):
    """Scheduling of generated kernels."""

    @classmethod
    def get_backend_features(cls, device: torch.device) -> Any:
        """The kinds of kernels that are generated."""
        return type(cls.backend_features)(
            each for each in super().get_backend_features(device) if each not in _ABSENT
        )


class SimulatedChoices(InductorChoices):
    """Choices among forms of a kernel."""

    @staticmethod
    def should_use_persistent_reduction(features: Any, cooperative_reduction: bool) -> bool:  # noqa: FBT001 - Inductor's signature
        """Whether a reduction has its rows in TCM."""
        from torch._inductor.virtualized import V

        return not cooperative_reduction and V.graph.sizevars.statically_known_leq(
            features.reduction_numel, _PERSISTENT
        )

    def uuid(self) -> str:
        """A name for caches."""
        return f"{DEVICE}-{_PERSISTENT}"


class DeviceCode(DeviceOpOverrides):
    """Lines of generated code: a rank has one device, and launches are on its current stream."""

    def import_get_raw_stream_as(self, name: str) -> str:
        """The function that returns a stream."""
        return f"{name} = int"

    def set_device(self, device_idx: int) -> str:
        """Select a device."""
        return f"torch.{DEVICE}.set_device({device_idx})"

    def synchronize(self) -> str:
        """Wait for the device."""
        return f"torch.{DEVICE}.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        """A `with` block on a device."""
        return f"torch.{DEVICE}.device({device_idx})"


class SimulatedInterface(DeviceInterface):
    """The device as TorchDynamo and Inductor call it."""

    Event = _module.Event
    Stream = _module.Stream
    current_device = staticmethod(_module.current_device)
    set_device = staticmethod(_module.set_device)
    device_count = staticmethod(_module.device_count)
    is_available = staticmethod(_module.is_available)
    current_stream = staticmethod(_module.current_stream)
    set_stream = staticmethod(_module.set_stream)
    stream = staticmethod(_module.stream)
    synchronize = staticmethod(_module.synchronize)
    memory_allocated = staticmethod(_module.memory_allocated)
    device = _module.device

    class Worker(DeviceInterface.Worker):
        """The same functions; no other process compiles."""

        set_device = staticmethod(_module.set_device)
        current_device = staticmethod(_module.current_device)
        get_device_properties = staticmethod(_module.get_device_properties)

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        """The number of the current stream."""
        del device_idx
        return 0

    @staticmethod
    def get_compute_capability(device: object = None) -> str:
        """The kind of processor."""
        del device
        return "pe"

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:  # noqa: FBT001, FBT002 - PyTorch's signature
        """True: the engines read and write bfloat16."""
        del including_emulation
        return True

    @staticmethod
    def is_triton_capable(device: object = None) -> bool:
        """True: the front end executes kernels."""
        del device
        return True

    @classmethod
    def raise_if_triton_unavailable(cls, device: object = None) -> None:
        """Nothing: the front end is there."""
        del device


def register_codegen() -> None:
    """Register the device with Inductor, once."""
    register_backend_for_device(
        DEVICE, SimulatedScheduling, PythonWrapperCodegen, device_custom_pass=DevicePasses()
    )
    register_device_op_overrides(DEVICE, DeviceCode())
    register_interface_for_device(DEVICE, SimulatedInterface)
    # There is no public name for either. A device of the list fuses loops of different orders,
    # divides long sums over its PEs, and takes numbers from CPU tensors.
    utils.GPU_TYPES.append(DEVICE)
    _scheduler.has_triton = lambda: True
