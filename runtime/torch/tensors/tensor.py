"""Tensors on the accelerator: a shape, an element type, and shards in the HBM slices of PEs."""

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from runtime.torch.absent import absent_in_tensor
from runtime.torch.tensors.arithmetic_methods import ArithmeticMethods
from runtime.torch.tensors.tensor_conversions import TensorConversions
from runtime.torch.tensors.tensor_operators import TensorOperators

_INTERNAL = ("allocate", "map_requests", "policy_of_copies")
"""Attributes for the modules of kernbench, which errors do not suggest."""
_FIXED = ("shape", "dtype", "address", "shards", "policy", "layout", "storage", "is_flat")


class Tensor(TensorOperators, ArithmeticMethods, TensorConversions):
    """A tensor of one rank. Its elements are in simulated HBM, and the host accesses them by
    simulated requests.

    Each base class has one idea: `StoredTensor` the memory, `TensorViews` the windows,
    `TensorReads` what the host reads, `TensorMethods` and `TensorConversions` the work on the
    device, `ArithmeticMethods` and `TensorOperators` arithmetic.
    """

    def __init__(self, *memory: Any, **description: Any) -> None:
        if not description:
            raise TypeError(
                "torch.Tensor is the class of tensors; torch.tensor(data) and torch.empty(size) "
                "make one"
            )
        super().__init__(*memory, **description)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "data" or (name in _FIXED and name in vars(self)):
            advice = "copy_() writes elements, view() and to() give another shape and type"
            raise AttributeError(f"attribute {name!r} of a Tensor is not writable: {advice}")
        super().__setattr__(name, value)

    def __deepcopy__(self, _: dict[int, Any]) -> "Tensor":
        return self.clone()

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise TypeError(
            "a tensor in simulated memory is not pickled; send x.numpy(), or copy it with x.clone()"
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __repr__(self) -> str:
        """Shape, dtype, mean and L2 norm. It reads the tensor, which takes simulated time."""
        described = f"shape={self.shape}, dtype={self.dtype!r}"
        if not self._state.data:
            return f"tensor({described}, no data)"
        values = self.numpy().astype(np.float64)
        mean = values.mean() if values.size else float("nan")
        return (
            f"tensor({described}, mean={mean:.6g}, norm={np.linalg.norm(values.reshape(-1)):.6g})"
        )

    if not TYPE_CHECKING:
        # With this method in sight, a type checker would accept every attribute.
        def __getattr__(self, name: str) -> NoReturn:
            # The methods and properties, without the attributes that `__init__` sets.
            known = [
                each
                for each in dir(type(self))
                if not each.startswith("_") and each not in _INTERNAL
            ]
            raise absent_in_tensor(name, known)
