"""The operators of tensors, each as in PyTorch.

They launch the shipped kernels of `elementwise` and of products; only `bool` reads the tensor.
"""

from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.memory.tensor_views import TensorViews
from runtime.language.value import Array
from runtime.torch.tensors.functions import elementwise, product_of

if TYPE_CHECKING:
    from runtime.device.operations.elementwise_launch import Operand
    from runtime.torch.tensors.tensor import Tensor


class TensorOperators(TensorViews):
    """Arithmetic and comparisons. An operator with something that is neither a tensor nor a number
    is a `TypeError`, as in Python; `==` with it is False, as in PyTorch.
    """

    # Numbers of numpy on the left then leave the operator to the tensor, and arrays are refused.
    __array_ufunc__ = None

    def __bool__(self) -> bool:
        """The truth of the one element, which is read."""
        if self.numel() != 1:
            which = "more than one value" if self.numel() else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {which} is ambiguous")
        if not self._state.data:
            raise RuntimeError(
                f"Boolean value of {self.name} is not known: this run simulates no data"
            )
        return bool(self.numpy().reshape(-1)[0])

    # As in PyTorch: a tensor is a key by its identity, since `==` gives a tensor.
    def __hash__(self) -> int:
        return object.__hash__(self)

    def __add__(self, other: "Operand") -> "Tensor":
        return _operator("add", self, other)

    def __radd__(self, other: "Operand") -> "Tensor":
        return _operator("add", other, self)

    def __iadd__(self, other: "Operand") -> Self:
        return _operator("add", self, other, out=self)

    def __sub__(self, other: "Operand") -> "Tensor":
        return _operator("sub", self, other)

    def __rsub__(self, other: "Operand") -> "Tensor":
        return _operator("sub", other, self)

    def __isub__(self, other: "Operand") -> Self:
        return _operator("sub", self, other, out=self)

    def __mul__(self, other: "Operand") -> "Tensor":
        return _operator("mul", self, other)

    def __rmul__(self, other: "Operand") -> "Tensor":
        return _operator("mul", other, self)

    def __imul__(self, other: "Operand") -> Self:
        return _operator("mul", self, other, out=self)

    def __truediv__(self, other: "Operand") -> "Tensor":
        return _operator("div", self, other)

    def __rtruediv__(self, other: "Operand") -> "Tensor":
        return _operator("div", other, self)

    def __itruediv__(self, other: "Operand") -> Self:
        return _operator("div", self, other, out=self)

    def __matmul__(self, other: "Tensor") -> "Tensor":
        return product_of("matmul", self, other)

    def __pow__(self, exponent: float) -> "Tensor":
        return elementwise().pow(self, exponent)

    def __neg__(self) -> "Tensor":
        return elementwise().neg(self)

    def __pos__(self) -> Self:
        return self

    def __and__(self, other: "Operand") -> "Tensor":
        return _operator("bitwise_and", self, other)

    def __rand__(self, other: "Operand") -> "Tensor":
        return _operator("bitwise_and", other, self)

    def __or__(self, other: "Operand") -> "Tensor":
        return _operator("bitwise_or", self, other)

    def __ror__(self, other: "Operand") -> "Tensor":
        return _operator("bitwise_or", other, self)

    def __xor__(self, other: "Operand") -> "Tensor":
        return _operator("bitwise_xor", self, other)

    def __rxor__(self, other: "Operand") -> "Tensor":
        return _operator("bitwise_xor", other, self)

    def __invert__(self) -> "Tensor":
        return elementwise().bitwise_not(self)

    def __abs__(self) -> "Tensor":
        return elementwise().abs(self)

    def __eq__(self, other: object) -> "Tensor":  # type: ignore[override]
        return _operator("eq", self, other)

    def __ne__(self, other: object) -> "Tensor":  # type: ignore[override]
        return _operator("ne", self, other)

    def __lt__(self, other: "Operand") -> "Tensor":
        return _operator("lt", self, other)

    def __le__(self, other: "Operand") -> "Tensor":
        return _operator("le", self, other)

    def __gt__(self, other: "Operand") -> "Tensor":
        return _operator("gt", self, other)

    def __ge__(self, other: "Operand") -> "Tensor":
        return _operator("ge", self, other)


def _operator(name: str, a: object, b: object, **options: object) -> Any:
    """Call a function of two operands; Python's own answer if one of them is no operand."""
    operands = [_as_number(each) for each in (a, b)]
    for each in operands:
        if isinstance(each, np.ndarray):
            # Python would compare identities, and `==` would be False.
            shape = np.shape(cast("Array", each))
            raise TypeError(
                f"{name}(): an operand is a numpy array of shape {shape}; make a tensor of it "
                "with torch.from_numpy, or compute on the host with tensor.numpy()"
            )
        if not isinstance(each, StoredTensor | int | float | np.number | np.bool):
            return NotImplemented
    return getattr(elementwise(), name)(*operands, **options)


def _as_number(operand: object) -> object:
    """The element of an array without axes, as the host reads it from a tensor."""
    if not isinstance(operand, np.ndarray):
        return operand
    array = cast("Array", operand)
    return array if array.ndim else array.item()
