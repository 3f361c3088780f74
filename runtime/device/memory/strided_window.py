"""Windows of memory with any strides: the tensors of an operator as its kernels read them."""

from math import prod
from typing import Generic, NamedTuple, TypeVar

from runtime.device.memory.stored_tensor import StoredTensor
from runtime.language.value import row_major

Stored_co = TypeVar("Stored_co", bound=StoredTensor, covariant=True)


class StridedWindow(NamedTuple, Generic[Stored_co]):
    """The memory of a tensor: `window` has its elements from the first to the last one
    in memory, of which `strides` (in elements) select those of `shape`.
    """

    window: Stored_co
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def of(tensor: StoredTensor) -> "StridedWindow[StoredTensor]":
        """All elements of a flat tensor, or of one with one element."""
        return StridedWindow(tensor, tensor.shape, row_major(tensor.shape))

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are the window, in row-major order."""
        return self.window.numel() == prod(self.shape) and all(
            stride == dense or length == 1
            for stride, dense, length in zip(
                self.strides, row_major(self.shape), self.shape, strict=True
            )
        )
