"""The methods of tensors that compute: comparisons, arithmetic, functions, products, reductions.

They are the functions of `torch` with the same names, and launch the same kernels; `equal` and
`allclose` read the tensors.
"""

from typing import Self

from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.operations import elementwise, matmul, reductions


class ArithmeticMethods(DeviceTensor):
    """The methods, each as in PyTorch; the tensor is the first argument of the function."""

    eq, ne = elementwise.eq, elementwise.ne
    lt, le = elementwise.lt, elementwise.le
    gt, ge = elementwise.gt, elementwise.ge
    add, sub = elementwise.add, elementwise.sub
    mul, div = elementwise.mul, elementwise.div
    maximum, minimum = elementwise.maximum, elementwise.minimum
    pow, clamp = elementwise.pow, elementwise.clamp
    neg, abs = elementwise.neg, elementwise.abs
    exp, log = elementwise.exp, elementwise.log
    sqrt, relu = elementwise.sqrt, elementwise.relu
    sin, cos = elementwise.sin, elementwise.cos
    tanh, sigmoid = elementwise.tanh, elementwise.sigmoid
    matmul, mm = matmul.matmul, matmul.mm
    sum, mean = reductions.sum, reductions.mean
    amax, amin = reductions.amax, reductions.amin
    max, min = reductions.max, reductions.min
    any, all = reductions.any, reductions.all
    softmax = reductions.softmax
    equal, allclose = reductions.equal, reductions.allclose

    def add_(self, other: Self | float, *, alpha: float = 1) -> Self:
        """`self + alpha * other`, in place."""
        return elementwise.add(self, other, alpha=alpha, out=self)

    def sub_(self, other: Self | float, *, alpha: float = 1) -> Self:
        """`self - alpha * other`, in place."""
        return elementwise.sub(self, other, alpha=alpha, out=self)

    def mul_(self, other: Self | float) -> Self:
        """`self * other`, in place."""
        return elementwise.mul(self, other, out=self)

    def div_(self, other: Self | float) -> Self:
        """`self / other`, in place."""
        return elementwise.div(self, other, out=self)
