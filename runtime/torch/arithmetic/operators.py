"""The operators, comparisons and arithmetic methods of tensors, each as in PyTorch.

They launch the shipped kernels of `elementwise` and `reductions`; only
`bool` reads the tensor.
"""

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from runtime.core.dtypes import DType
from runtime.language.value import Array
from runtime.torch.tensors.stored_tensor import StoredTensor
from runtime.torch.tensors.tensor_views import TensorViews

if TYPE_CHECKING:
    from runtime.torch.arithmetic.elementwise_launch import Operand
    from runtime.torch.arithmetic.reductions import Axes
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
        return _product("matmul", self, other)

    def __pow__(self, exponent: float) -> "Tensor":
        return _elementwise().pow(self, exponent)

    def __neg__(self) -> "Tensor":
        return _elementwise().neg(self)

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
        return _elementwise().bitwise_not(self)

    def __abs__(self) -> "Tensor":
        return _elementwise().abs(self)

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

    def eq(self, other: "Operand") -> "Tensor":
        """`self == other`, elementwise."""
        return _elementwise().eq(self, other)

    def ne(self, other: "Operand") -> "Tensor":
        """`self != other`, elementwise."""
        return _elementwise().ne(self, other)

    def lt(self, other: "Operand") -> "Tensor":
        """`self < other`, elementwise."""
        return _elementwise().lt(self, other)

    def le(self, other: "Operand") -> "Tensor":
        """`self <= other`, elementwise."""
        return _elementwise().le(self, other)

    def gt(self, other: "Operand") -> "Tensor":
        """`self > other`, elementwise."""
        return _elementwise().gt(self, other)

    def ge(self, other: "Operand") -> "Tensor":
        """`self >= other`, elementwise."""
        return _elementwise().ge(self, other)

    def add(self, other: "Operand", *, alpha: float = 1) -> "Tensor":
        """`self + alpha * other`."""
        return _elementwise().add(self, other, alpha=alpha)

    def add_(self, other: "Operand", *, alpha: float = 1) -> Self:
        """`self + alpha * other`, in place."""
        return _elementwise().add(self, other, alpha=alpha, out=self)

    def sub(self, other: "Operand", *, alpha: float = 1) -> "Tensor":
        """`self - alpha * other`."""
        return _elementwise().sub(self, other, alpha=alpha)

    def sub_(self, other: "Operand", *, alpha: float = 1) -> Self:
        """`self - alpha * other`, in place."""
        return _elementwise().sub(self, other, alpha=alpha, out=self)

    def mul(self, other: "Operand") -> "Tensor":
        """`self * other`."""
        return _elementwise().mul(self, other)

    def mul_(self, other: "Operand") -> Self:
        """`self * other`, in place."""
        return _elementwise().mul(self, other, out=self)

    def div(self, other: "Operand") -> "Tensor":
        """`self / other`."""
        return _elementwise().div(self, other)

    def div_(self, other: "Operand") -> Self:
        """`self / other`, in place."""
        return _elementwise().div(self, other, out=self)

    def maximum(self, other: "Tensor") -> "Tensor":
        """The greater of two elements."""
        return _elementwise().maximum(self, other)

    def minimum(self, other: "Tensor") -> "Tensor":
        """The lesser of two elements."""
        return _elementwise().minimum(self, other)

    def pow(self, exponent: float) -> "Tensor":
        """`self ** exponent` for the exponents 1, 2 and 0.5."""
        return _elementwise().pow(self, exponent)

    def clamp(self, min: float | None = None, max: float | None = None) -> "Tensor":  # noqa: A002 - PyTorch's names
        """Elements below `min` become `min`, above `max` become `max`."""
        return _elementwise().clamp(self, min, max)

    def neg(self) -> "Tensor":
        """`-self`."""
        return _elementwise().neg(self)

    def exp(self) -> "Tensor":
        """The exponential."""
        return _elementwise().exp(self)

    def log(self) -> "Tensor":
        """The natural logarithm."""
        return _elementwise().log(self)

    def sqrt(self) -> "Tensor":
        """The square root."""
        return _elementwise().sqrt(self)

    def sin(self) -> "Tensor":
        """The sine of radians."""
        return _elementwise().sin(self)

    def cos(self) -> "Tensor":
        """The cosine of radians."""
        return _elementwise().cos(self)

    def tanh(self) -> "Tensor":
        """The hyperbolic tangent."""
        return _elementwise().tanh(self)

    def sigmoid(self) -> "Tensor":
        """`1 / (1 + exp(-self))`."""
        return _elementwise().sigmoid(self)

    def relu(self) -> "Tensor":
        """`max(self, 0)`."""
        return _elementwise().relu(self)

    def abs(self) -> "Tensor":
        """The absolute value."""
        return _elementwise().abs(self)

    def matmul(self, other: "Tensor") -> "Tensor":
        """The matrix product, `torch.matmul`."""
        return _product("matmul", self, other)

    def mm(self, mat2: "Tensor") -> "Tensor":
        """The product of two matrices, `torch.mm`."""
        return _product("mm", self, mat2)

    def sum(
        self, dim: "Axes" = None, keepdim: bool = False, *, dtype: DType | None = None
    ) -> "Tensor":
        """The sum of all elements or along axes, `torch.sum`."""
        return _reductions().sum(self, dim, keepdim, dtype=dtype)

    def mean(
        self, dim: "Axes" = None, keepdim: bool = False, *, dtype: DType | None = None
    ) -> "Tensor":
        """The mean of all elements or along axes, `torch.mean`."""
        return _reductions().mean(self, dim, keepdim, dtype=dtype)

    def amax(self, dim: "Axes" = None, keepdim: bool = False) -> "Tensor":
        """The greatest element, or the greatest ones along axes."""
        return _reductions().amax(self, dim, keepdim)

    def amin(self, dim: "Axes" = None, keepdim: bool = False) -> "Tensor":
        """The least element, or the least ones along axes."""
        return _reductions().amin(self, dim, keepdim)

    def max(self, other: "Tensor | None" = None) -> "Tensor":
        """The greatest element; with another tensor, `torch.maximum`."""
        return _reductions().max(self, other)

    def min(self, other: "Tensor | None" = None) -> "Tensor":
        """The least element; with another tensor, `torch.minimum`."""
        return _reductions().min(self, other)

    def any(self, dim: "Axes" = None, keepdim: bool = False) -> "Tensor":
        """Whether an element is not 0."""
        return _reductions().any(self, dim, keepdim)

    def all(self, dim: "Axes" = None, keepdim: bool = False) -> "Tensor":
        """Whether no element is 0."""
        return _reductions().all(self, dim, keepdim)

    def softmax(self, dim: int, *, dtype: DType | None = None) -> "Tensor":
        """`exp(x - max) / sum(exp(x - max))` along an axis."""
        return _reductions().softmax(self, dim, dtype=dtype)

    def equal(self, other: "Tensor") -> bool:
        """Whether shape and elements are equal, compared on the host."""
        return _reductions().equal(self, other)

    def allclose(
        self, other: "Tensor", rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
    ) -> bool:
        """Whether all elements are close, computed on the host: `torch.allclose`."""
        return _reductions().allclose(self, other, rtol, atol, equal_nan)


def _elementwise() -> ModuleType:
    # The functions make tensors, so their module imports the class that this one is a base of.
    from runtime.torch.arithmetic import elementwise

    return elementwise


def _reductions() -> ModuleType:
    from runtime.torch.arithmetic import reductions

    return reductions


def _product(name: str, a: object, b: object) -> Any:
    # The package has a function with the name of the module.
    from runtime.torch.products.matmul import matmul, mm

    products: dict[str, Callable[..., object]] = {"matmul": matmul, "mm": mm}
    return products[name](a, b) if isinstance(b, StoredTensor) else NotImplemented


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
    return getattr(_elementwise(), name)(*operands, **options)


def _as_number(operand: object) -> object:
    """The element of an array without axes, as the host reads it from a tensor."""
    if not isinstance(operand, np.ndarray):
        return operand
    array = cast("Array", operand)
    return array if array.ndim else array.item()
