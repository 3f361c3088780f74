"""Windows of memory with any strides: the tensors of an operator as its kernels read them."""

from math import prod
from typing import NamedTuple

from runtime.device.launches.device_tensor import DeviceTensor
from runtime.language.value import Pointer, row_major


class StridedWindow(NamedTuple):
    """The memory of a tensor: `window` has its elements from the first to the last one
    in memory, of which `strides` (in elements) select those of `shape`.
    """

    window: DeviceTensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, tensor: DeviceTensor) -> "StridedWindow":
        """All elements of a flat tensor, or of one with one element."""
        return cls(tensor, tensor.shape, row_major(tensor.shape))

    @property
    def pointer(self) -> Pointer:
        """The virtual address of element 0."""
        return Pointer(self.window.address, self.window.dtype)

    def matrix(self, number: int) -> "StridedWindow":
        """One element of the first axis, as a batch of one."""
        shape, strides = (1, *self.shape[1:]), self.strides
        last = sum((length - 1) * by for length, by in zip(shape, strides, strict=True))
        dtype = self.window.dtype
        start = number * strides[0] * dtype.itemsize
        return StridedWindow(self.window.view(dtype, start, last + 1), shape, strides)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are the window, in row-major order."""
        return self.window.numel() == prod(self.shape) and all(
            stride == dense or length == 1
            for stride, dense, length in zip(
                self.strides, row_major(self.shape), self.shape, strict=True
            )
        )
