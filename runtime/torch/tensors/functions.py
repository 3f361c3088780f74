"""The functions that operators and methods of tensors call, loaded at the call.

The functions make tensors, so their modules import the class that operators and methods are bases
of.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from runtime.device.memory.stored_tensor import StoredTensor


def elementwise() -> ModuleType:
    """The module of the elementwise functions."""
    from runtime.device.operations import elementwise

    return elementwise


def reductions() -> ModuleType:
    """The module of the reductions."""
    from runtime.device.operations import reductions

    return reductions


def product_of(name: str, a: object, b: object) -> Any:
    """The product `matmul` or `mm` of two tensors; `NotImplemented` if `b` is no tensor."""
    # The package has a function with the name of the module.
    from runtime.device.operations.matmul import matmul, mm

    products: dict[str, Callable[..., object]] = {"matmul": matmul, "mm": mm}
    return products[name](a, b) if isinstance(b, StoredTensor) else NotImplemented
