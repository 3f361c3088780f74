"""The operators of tensors, each as in PyTorch.

They launch the kernels of `elementwise` and of products; only `bool` reads the tensor.
"""

from collections.abc import Callable
from typing import Any, Self, TypeVar, cast

import numpy as np

from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.operations import elementwise
from runtime.device.operations.matmul import matmul
from runtime.language.value import Array

T = TypeVar("T", bound=DeviceTensor)
Operator = Callable[[T, "T | float"], T]


def _operator(function: Callable[..., Any]) -> Operator[T]:
    """`x + y`."""

    def operator(self: T, other: "T | float") -> T:
        return _result(function, self, other)

    return operator


def _reflected(function: Callable[..., Any]) -> Operator[T]:
    """`y + x`, of a number y."""

    def operator(self: T, other: "T | float") -> T:
        return _result(function, other, self)

    return operator


def _in_place(function: Callable[..., Any]) -> Operator[T]:
    """`x += y`."""

    def operator(self: T, other: "T | float") -> T:
        return _result(function, self, other, out=self)

    return operator


class TensorOperators(DeviceTensor):
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

    __add__, __radd__ = _operator(elementwise.add), _reflected(elementwise.add)
    __sub__, __rsub__ = _operator(elementwise.sub), _reflected(elementwise.sub)
    __mul__, __rmul__ = _operator(elementwise.mul), _reflected(elementwise.mul)
    __truediv__, __rtruediv__ = _operator(elementwise.div), _reflected(elementwise.div)
    __iadd__, __isub__ = _in_place(elementwise.add), _in_place(elementwise.sub)
    __imul__, __itruediv__ = _in_place(elementwise.mul), _in_place(elementwise.div)
    __and__, __rand__ = _operator(elementwise.bitwise_and), _reflected(elementwise.bitwise_and)
    __or__, __ror__ = _operator(elementwise.bitwise_or), _reflected(elementwise.bitwise_or)
    __xor__, __rxor__ = _operator(elementwise.bitwise_xor), _reflected(elementwise.bitwise_xor)
    __lt__, __le__ = _operator(elementwise.lt), _operator(elementwise.le)
    __gt__, __ge__ = _operator(elementwise.gt), _operator(elementwise.ge)
    __pow__, __neg__ = elementwise.pow, elementwise.neg
    __invert__, __abs__ = elementwise.bitwise_not, elementwise.abs

    def __matmul__(self, other: Self) -> Self:
        if not isinstance(other, DeviceTensor):  # pyright: ignore[reportUnnecessaryIsInstance] - user code is not type-checked
            return NotImplemented
        return matmul(self, other)

    def __pos__(self) -> Self:
        return self

    def __eq__(self, other: object) -> Self:  # type: ignore[override]
        return _result(elementwise.eq, self, other)

    def __ne__(self, other: object) -> Self:  # type: ignore[override]
        return _result(elementwise.ne, self, other)


def _result(function: Callable[..., Any], a: object, b: object, **options: object) -> Any:
    """A function of two operands; Python's own answer if one of them is no operand."""
    operands = [_as_number(each) for each in (a, b)]
    for each in operands:
        if isinstance(each, np.ndarray):
            # Python would compare identities, and `==` would be False.
            name, shape = getattr(function, "__name__", ""), np.shape(cast("Array", each))
            raise TypeError(
                f"{name}(): an operand is a numpy array of shape {shape}; make a tensor of it "
                "with torch.from_numpy, or compute on the host with tensor.numpy()"
            )
        if not isinstance(each, DeviceTensor | int | float | np.number | np.bool):
            return NotImplemented
    return function(*operands, **options)


def _as_number(operand: object) -> object:
    """The element of an array without axes, as the host reads it from a tensor."""
    if not isinstance(operand, np.ndarray):
        return operand
    array = cast("Array", operand)
    return array if array.ndim else array.item()
