"""The methods of tensors that compute: comparisons, arithmetic, functions, products, reductions.

They launch the shipped kernels, as the functions of `torch` with the same names do; `equal` and
`allclose` read the tensors.
"""

from typing import TYPE_CHECKING, Self

from runtime.core.dtypes import DType
from runtime.device.memory.tensor_views import TensorViews
from runtime.torch.tensors.functions import elementwise, product_of, reductions

if TYPE_CHECKING:
    from runtime.device.operations.elementwise_launch import Operand
    from runtime.device.operations.reduction_launch import Axes
    from runtime.torch.tensors.tensor import Tensor


class ArithmeticMethods(TensorViews):
    """The methods, each as in PyTorch."""

    def eq(self, other: "Operand") -> "Tensor":
        """`self == other`, elementwise."""
        return elementwise().eq(self, other)

    def ne(self, other: "Operand") -> "Tensor":
        """`self != other`, elementwise."""
        return elementwise().ne(self, other)

    def lt(self, other: "Operand") -> "Tensor":
        """`self < other`, elementwise."""
        return elementwise().lt(self, other)

    def le(self, other: "Operand") -> "Tensor":
        """`self <= other`, elementwise."""
        return elementwise().le(self, other)

    def gt(self, other: "Operand") -> "Tensor":
        """`self > other`, elementwise."""
        return elementwise().gt(self, other)

    def ge(self, other: "Operand") -> "Tensor":
        """`self >= other`, elementwise."""
        return elementwise().ge(self, other)

    def add(self, other: "Operand", *, alpha: float = 1) -> "Tensor":
        """`self + alpha * other`."""
        return elementwise().add(self, other, alpha=alpha)

    def add_(self, other: "Operand", *, alpha: float = 1) -> Self:
        """`self + alpha * other`, in place."""
        return elementwise().add(self, other, alpha=alpha, out=self)

    def sub(self, other: "Operand", *, alpha: float = 1) -> "Tensor":
        """`self - alpha * other`."""
        return elementwise().sub(self, other, alpha=alpha)

    def sub_(self, other: "Operand", *, alpha: float = 1) -> Self:
        """`self - alpha * other`, in place."""
        return elementwise().sub(self, other, alpha=alpha, out=self)

    def mul(self, other: "Operand") -> "Tensor":
        """`self * other`."""
        return elementwise().mul(self, other)

    def mul_(self, other: "Operand") -> Self:
        """`self * other`, in place."""
        return elementwise().mul(self, other, out=self)

    def div(self, other: "Operand") -> "Tensor":
        """`self / other`."""
        return elementwise().div(self, other)

    def div_(self, other: "Operand") -> Self:
        """`self / other`, in place."""
        return elementwise().div(self, other, out=self)

    def maximum(self, other: "Tensor") -> "Tensor":
        """The greater of two elements."""
        return elementwise().maximum(self, other)

    def minimum(self, other: "Tensor") -> "Tensor":
        """The lesser of two elements."""
        return elementwise().minimum(self, other)

    def pow(self, exponent: float) -> "Tensor":
        """`self ** exponent` for the exponents 1, 2 and 0.5."""
        return elementwise().pow(self, exponent)

    def clamp(self, min: float | None = None, max: float | None = None) -> "Tensor":  # noqa: A002 - PyTorch's names
        """Elements below `min` become `min`, above `max` become `max`."""
        return elementwise().clamp(self, min, max)

    def neg(self) -> "Tensor":
        """`-self`."""
        return elementwise().neg(self)

    def exp(self) -> "Tensor":
        """The exponential."""
        return elementwise().exp(self)

    def log(self) -> "Tensor":
        """The natural logarithm."""
        return elementwise().log(self)

    def sqrt(self) -> "Tensor":
        """The square root."""
        return elementwise().sqrt(self)

    def sin(self) -> "Tensor":
        """The sine of radians."""
        return elementwise().sin(self)

    def cos(self) -> "Tensor":
        """The cosine of radians."""
        return elementwise().cos(self)

    def tanh(self) -> "Tensor":
        """The hyperbolic tangent."""
        return elementwise().tanh(self)

    def sigmoid(self) -> "Tensor":
        """`1 / (1 + exp(-self))`."""
        return elementwise().sigmoid(self)

    def relu(self) -> "Tensor":
        """`max(self, 0)`."""
        return elementwise().relu(self)

    def abs(self) -> "Tensor":
        """The absolute value."""
        return elementwise().abs(self)

    def matmul(self, other: "Tensor") -> "Tensor":
        """The matrix product, `torch.matmul`."""
        return product_of("matmul", self, other)

    def mm(self, mat2: "Tensor") -> "Tensor":
        """The product of two matrices, `torch.mm`."""
        return product_of("mm", self, mat2)

    def sum(
        self, dim: "Axes" = None, keepdim: bool = False, *, dtype: DType | None = None
    ) -> "Tensor":
        """The sum of all elements or along axes, `torch.sum`."""
        return reductions().sum(self, dim, keepdim, dtype=dtype)

    def mean(
        self, dim: "Axes" = None, keepdim: bool = False, *, dtype: DType | None = None
    ) -> "Tensor":
        """The mean of all elements or along axes, `torch.mean`."""
        return reductions().mean(self, dim, keepdim, dtype=dtype)

    def amax(self, dim: "Axes" = None, keepdim: bool = False) -> "Tensor":
        """The greatest element, or the greatest ones along axes."""
        return reductions().amax(self, dim, keepdim)

    def amin(self, dim: "Axes" = None, keepdim: bool = False) -> "Tensor":
        """The least element, or the least ones along axes."""
        return reductions().amin(self, dim, keepdim)

    def max(self, other: "Tensor | None" = None) -> "Tensor":
        """The greatest element; with another tensor, `torch.maximum`."""
        return reductions().max(self, other)

    def min(self, other: "Tensor | None" = None) -> "Tensor":
        """The least element; with another tensor, `torch.minimum`."""
        return reductions().min(self, other)

    def any(self, dim: "Axes" = None, keepdim: bool = False) -> "Tensor":
        """Whether an element is not 0."""
        return reductions().any(self, dim, keepdim)

    def all(self, dim: "Axes" = None, keepdim: bool = False) -> "Tensor":
        """Whether no element is 0."""
        return reductions().all(self, dim, keepdim)

    def softmax(self, dim: int, *, dtype: DType | None = None) -> "Tensor":
        """`exp(x - max) / sum(exp(x - max))` along an axis."""
        return reductions().softmax(self, dim, dtype=dtype)

    def equal(self, other: "Tensor") -> bool:
        """Whether shape and elements are equal, compared on the host."""
        return reductions().equal(self, other)

    def allclose(
        self, other: "Tensor", rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
    ) -> bool:
        """Whether all elements are close, computed on the host: `torch.allclose`."""
        return reductions().allclose(self, other, rtol, atol, equal_nan)
