"""Windows of memory with any strides: the tensors of an operator as its kernels read them."""

from math import prod
from typing import NamedTuple

from runtime.device.launches.device_tensor import DeviceTensor
from runtime.language.value import row_major


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
    def is_contiguous(self) -> bool:
        """Whether the elements are the window, in row-major order."""
        return self.window.numel() == prod(self.shape) and all(
            stride == dense or length == 1
            for stride, dense, length in zip(
                self.strides, row_major(self.shape), self.shape, strict=True
            )
        )
