"""Memory of the mock runtime: numpy arrays at virtual addresses. A store of a kernel changes the
array in place.
"""

from dataclasses import dataclass

import numpy as np

from runtime.core import dtypes
from runtime.language.value import Array, Pointer, Shape

_PAGE_BYTES = 4096
_FIRST_ADDRESS = 0x1_0000_0000


@dataclass(frozen=True)
class MappedArray:
    """An array at an address; `content` is a view of its bytes."""

    address: int
    content: Array
    name: str

    @property
    def end(self) -> int:
        """The address behind the last byte."""
        return self.address + self.content.nbytes


class MockMemory:
    """Arrays on separate pages, with a gap between: an access past the end of an array is in no
    other array.
    """

    def __init__(self) -> None:
        self.arrays: list[MappedArray] = []
        """All arrays, in the order of their addresses."""
        self._next = _FIRST_ADDRESS

    def map(self, array: Array, name: str) -> Pointer:
        """Map `array` and return its pointer; `ValueError` unless it is C-contiguous, `TypeError`
        for an unknown element type.
        """
        if not array.flags.c_contiguous:
            raise ValueError(
                f"{name}: an array of shape {array.shape} with strides {array.strides} is not "
                "contiguous, and a pointer leads to row-major elements without gaps: pass "
                "np.ascontiguousarray(...)"
            )
        try:
            dtype = dtypes.from_numpy(array.dtype)
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        content = array.reshape(-1).view(np.uint8)
        mapped = MappedArray(self._next, content, f"{name} {array.shape} {dtype.name}")
        self.arrays.append(mapped)
        # The next array begins at least one unmapped page behind this one.
        self._next = (mapped.end // _PAGE_BYTES + 2) * _PAGE_BYTES
        return Pointer(mapped.address, dtype)

    def block(self, pointer: Pointer, shape: Shape, strides: tuple[int, ...]) -> Array | None:
        """The elements of a block, as a view; None unless all its bytes are in one array."""
        size = pointer.dtype.itemsize
        # An empty block touches no memory, so any address is valid.
        if 0 in shape:
            return np.empty(shape, pointer.dtype.numpy)
        end = pointer.address + span_bytes(pointer, shape, strides)
        for mapped in self.arrays:
            if mapped.address <= pointer.address and end <= mapped.end:
                offset = pointer.address - mapped.address
                steps = tuple(step * size for step in strides)
                return np.ndarray(shape, pointer.dtype.numpy, mapped.content, offset, steps)
        return None

    def nearest(self, address: int) -> str:
        """The nearest array below `address`, for the message of a page fault."""
        below = [mapped for mapped in self.arrays if mapped.address <= address]
        if not below:
            return "no array is mapped below it"
        mapped = below[-1]
        array = f"array {mapped.name} at {mapped.address:#x}+{mapped.content.nbytes}"
        if address < mapped.end:
            return f"it starts inside {array} and runs past its end"
        return f"{address - mapped.end} bytes past the end of {array}"


def span_bytes(pointer: Pointer, shape: Shape, strides: tuple[int, ...]) -> int:
    """Bytes from the first to the last element of a block that is not empty."""
    return (
        sum((length - 1) * step for length, step in zip(shape, strides, strict=True)) + 1
    ) * pointer.dtype.itemsize
