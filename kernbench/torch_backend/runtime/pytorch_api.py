"""Parts of PyTorch beyond its typed public interface that the backend uses, declared once.

PyTorch has no public names for some of what a backend needs, and no types for some public
functions. Both are here with their types: a new version of PyTorch is compared with this module.
"""
# The two checks which refuse private names and what is reached through functions without types.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# ruff: noqa: SLF001

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch._C._distributed_c10d import Store
from torch._library.custom_ops import CustomOpDef
from torch._ops import OpOverload, OpOverloadPacket
from torch.distributed import distributed_c10d

from kernbench.torch_backend.runtime.frame_hook import untraced

if TYPE_CHECKING:

    class ProcessGroupBase:
        """Base class of a process group in Python, which is made of its rank and size.

        The stub of `torch.distributed.ProcessGroup` has the overloads of callers. PyTorch calls a
        group in Python in one form alone, by lists of tensors and a record of options.
        """

        def __init__(self, rank: int, size: int) -> None: ...

    class StreamBase:
        """Base class of streams. The stub of `torch.Stream` refuses methods that take other
        streams and events as well.
        """

        stream_id: int
        device_index: int

        def __new__(cls, *, stream_id: int, device_index: int, device_type: int) -> Self: ...

    class DeviceGuard:
        """Base class of the guard of devices in Python; `torch._C._acc` has no stub."""

    class PrivateUse1Hooks:
        """Base class of the hooks of a device in Python; `torch._C._acc` has no stub."""

else:
    ProcessGroupBase = torch.distributed.ProcessGroup
    StreamBase = torch.Stream
    DeviceGuard = torch._C._acc.DeviceGuard
    PrivateUse1Hooks = torch._C._acc.PrivateUse1Hooks

__all__ = [
    "CustomOpDef",
    "DeviceGuard",
    "OpOverload",
    "OpOverloadPacket",
    "PrivateUse1Hooks",
    "ProcessGroupBase",
    "Store",
]

DEVICE = "ahbm"
"""The name of the device in PyTorch."""
_UNTYPED: Any = torch._C
"""The C++ part of PyTorch, of which the stub has not all."""
PRIVATE_USE_KIND: object = _UNTYPED._autograd.DeviceType.PrivateUse1
"""The kind of device that a backend has."""
Inductor = torch._TorchCompileInductorWrapper
"""The class of the default backend of `torch.compile`."""
RUN_BACKWARD = "_engine_run_backward"
"""A function of `torch.autograd` and `torch.autograd.graph`: computes gradients."""
CONVERT = "_apply"
"""A method of `torch.nn.Module`: `to`, `cpu`, `double` and `to_empty` call it."""
MAKE_GROUP, MAKE_GROUP_WITH_TAG = "_new_process_group_helper", "_new_group_with_tag"
"""Functions of `torch.distributed.distributed_c10d`: members alone come as far as the backend, so a
group is made before.
"""
IS_SAVED_EMPTY = "_torch_load_uninitialized"
"""An attribute of storages whose elements come later."""
_decompositions = cast(
    dict[OpOverload, Callable[..., Any]], import_module("torch._decomp").decomposition_table
)
attention_of_products: Callable[..., Sequence[Tensor]] = (
    torch.ops.aten._scaled_dot_product_attention_math
)
"""Attention as products and a softmax; the first result is that of attention."""

# Public functions whose stubs have no types.
_broadcast_shapes = cast(Callable[..., torch.Size], torch.broadcast_shapes)
broadcast_tensors = cast(Callable[..., Sequence[Tensor]], torch.broadcast_tensors)
from_numpy = cast(Callable[[NDArray[np.generic]], Tensor], torch.from_numpy)
manual_seed = cast(Callable[[int], object], torch.manual_seed)
restored_at = cast(Callable[[Any, Any], Any], torch.serialization.default_restore_location)
register_device_module = cast(Callable[[str, ModuleType], None], torch._register_device_module)


def broadcast_shapes(*shapes: torch.Size) -> torch.Size:
    """`torch.broadcast_shapes`."""
    # PyTorch's function imports sympy, for symbolic shapes: half a second of the first operator.
    try:
        return torch.Size(np.broadcast_shapes(*shapes))
    except ValueError:
        return _broadcast_shapes(*shapes)


class SchemaParameter(NamedTuple):
    """A parameter in the schema of an operator; one `is_out` if its elements are written only."""

    name: str
    type: str
    is_written: bool
    is_out: bool

    @property
    def is_tensor(self) -> bool:
        """Whether it takes a tensor, and no list of them."""
        return self.type == "Tensor"


def parameters_of(operator: OpOverload) -> list[SchemaParameter]:
    """The parameters of an operator, in their order."""
    return [
        SchemaParameter(
            each.name,
            str(each.type),
            each.alias_info is not None and each.alias_info.is_write,
            each.kwarg_only and each.alias_info is not None and each.alias_info.is_write,
        )
        for each in operator._schema.arguments
    ]


def custom_operator(
    name: str, function: Callable[..., object], written: Sequence[str], schema: str
) -> CustomOpDef:
    """`torch.library.custom_op` of a function for all devices."""
    # PyTorch imports it in the first call of such an operator. Errors in that import keep the
    # frames of the call, and with them the memory of its tensors.
    import_module("torch._dynamo")
    return torch.library.custom_op(name, function, mutates_args=written, schema=schema)


def inferred_schema(prototype: Callable[..., object], written: Sequence[str]) -> str:
    """The schema of an operator with the signature of a function, without its name."""
    return torch.library.infer_schema(prototype, mutates_args=written)


def register_shapes(operator: CustomOpDef, shaped: Callable[..., object]) -> None:
    """Let a function compute the shapes and types of an operator's results."""
    operator.register_fake(shaped)


def register_gradient(
    operator: CustomOpDef, computed: Callable[..., object], kept: Callable[..., object]
) -> None:
    """Let functions compute the gradient of an operator, and keep what it needs for it."""
    operator.register_autograd(computed, setup_context=kept)


def overload_of(operator: CustomOpDef) -> OpOverload:
    """The overload of an operator, as nodes of a graph call it."""
    return operator._opoverload


def is_random(operator: OpOverload) -> bool:
    """Whether an operator draws random numbers."""
    return torch.Tag.nondeterministic_seeded in operator.tags


def returns_view(operator: OpOverload) -> bool:
    """Whether a result is a view of an operand, which is not written."""
    return any(
        each.alias_info is not None and not each.alias_info.is_write
        for each in operator._schema.returns
    )


def overloads_of(packet: OpOverloadPacket) -> list[OpOverload]:
    """The overloads of an operator."""
    return [getattr(packet, each) for each in packet.overloads()]


def functional_packet(operator: OpOverload) -> OpOverloadPacket:
    """The operator without an effect, of one that changes its operand: `mul` of `mul_`; its own one
    if there is none.
    """
    own = operator.overloadpacket
    return getattr(getattr(torch.ops, operator.namespace), own.__name__.removesuffix("_"), own)


def decomposition_of(operator: OpOverload) -> Callable[..., Any] | None:
    """The function by which PyTorch computes an operator by others."""
    return _decompositions.get(operator)


def implement(
    library: torch.library.Library, name: str, function: Callable[..., Any], key: str
) -> None:
    """Make a function the kernel of an operator for a dispatch key."""
    untraced(function)
    library.impl(name, function, key)


def fall_back(library: torch.library.Library, function: Callable[..., Any], key: str) -> None:
    """Make a function the kernel of all operators which have none for a dispatch key."""
    untraced(function)
    library.fallback(function, key)


def without_autocast() -> AbstractContextManager[Any]:
    """A `with` block in which autocast for the device is off."""
    keys = torch._C.DispatchKeySet(_UNTYPED.DispatchKey.AutocastPrivateUse1)
    return cast(AbstractContextManager[Any], torch._C._ExcludeDispatchKeyGuard(keys))


def below_autograd() -> AbstractContextManager[Any]:
    """A `with` block in which operators record no gradients, as in a kernel that autograd calls."""
    return cast(AbstractContextManager[Any], torch._C._AutoDispatchBelowAutograd())


@contextmanager
def above_autograd() -> Generator[None]:
    """A `with` block in a kernel in which operators record gradients."""
    keys, excluded = _UNTYPED.DispatchKey, _UNTYPED._dispatch_tls_local_exclude_set()
    for key in (keys.AutogradOther, keys.AutogradPrivateUse1, keys.ADInplaceOrView):
        excluded = excluded.remove(key)
    included = _UNTYPED._dispatch_tls_local_include_set()
    with _UNTYPED._ForceDispatchKeyGuard(included, excluded), torch.enable_grad():
        yield


def register_in_python(hooks: PrivateUse1Hooks, guard: DeviceGuard) -> None:
    """Make objects in Python the hooks and the guard of the device."""
    _UNTYPED._acc.register_python_privateuseone_hook(hooks)
    _UNTYPED._acc.register_python_privateuseone_device_guard(guard)


def is_in_bad_fork() -> bool:
    """False: a process of a rank does not fork. PyTorch reads it from each device module as
    `_is_in_bad_fork`.
    """
    return False


def register_backend(name: str, make: Callable[..., Any], devices: Sequence[str]) -> None:
    """Add a backend of process groups."""
    torch.distributed.Backend.register_backend(name, make, devices=list(devices))


def register_meeting(scheme: str, meet: Callable[..., Any]) -> None:
    """Make a function the rendezvous of a scheme, which PyTorch's own function refuses if it has
    one.
    """
    # `torch.distributed` has a function with the name of the module.
    import_module("torch.distributed.rendezvous")._rendezvous_handlers[scheme] = meet


def has_group(tag: str, ranks: Sequence[int]) -> bool:
    """Whether there is a process group of these ranks with a tag."""
    return distributed_c10d._find_pg_by_ranks_and_tag(tag, list(ranks)) is not None


def replace(owner: Any, name: str, wrap: Callable[[Any], Callable[..., Any]]) -> None:
    """Put a wrapper in the place of a function of PyTorch, which it calls. `torch.compile` traces
    neither of them.
    """
    wrapper = wrap(getattr(owner, name))
    untraced(wrapper)
    setattr(owner, name, wrapper)


def integers(x: Tensor) -> list[int]:
    """`Tensor.tolist` of a vector of integers."""
    return cast(list[int], x.tolist())


def cut(x: Tensor, axis: int, parts: int) -> Tensor:
    """`Tensor.unflatten` of an axis, into a number of parts."""
    return cast(Tensor, x.unflatten(axis, (parts, -1)))


def vector_norm(x: Tensor, axes: list[int], *, order: float = 2, keepdim: bool = False) -> Tensor:
    """`torch.linalg.vector_norm`."""
    return cast(Any, torch.linalg).vector_norm(x, order, dim=axes, keepdim=keepdim)


def negative_view(x: Tensor) -> Tensor:
    """A view of the elements with other signs."""
    return x._neg_view()


def zero_each(tensors: Sequence[Tensor]) -> None:
    """Set tensors to 0, as one operator."""
    torch.ops.aten._foreach_zero_(list(tensors))


def applied(function: type[torch.autograd.Function], *given: Any) -> Tensor:
    """The result of a function that has its own gradient."""
    return cast(Tensor, function.apply(*given))
