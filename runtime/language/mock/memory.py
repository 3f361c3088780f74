"""Memory of the mock runtime: numpy arrays at virtual addresses. What kernels store changes the arrays in place."""

from dataclasses import dataclass

import numpy as np

from runtime.core import dtypes
from runtime.language.value import Array, Pointer, Shape

_PAGE_BYTES = 4096
_FIRST_ADDRESS = 0x1_0000_0000


@dataclass(frozen=True)
class _Placed:
    """An array of which `content` is every byte."""

    address: int
    content: Array
    name: str

    @property
    def end(self) -> int:
        return self.address + self.content.nbytes


class MockMemory:
    """Arrays on pages of their own, so that an access past the end of one never meets another."""

    def __init__(self) -> None:
        self._arrays: list[_Placed] = []
        self._next = _FIRST_ADDRESS

    def place(self, array: Array, name: str) -> Pointer:
        """Give `array` an address; `ValueError` or `TypeError` where it cannot be the memory behind a pointer."""
        if not array.flags.c_contiguous:
            raise ValueError(
                f"{name}: an array of shape {array.shape} with strides {array.strides} is not contiguous, and a pointer sees "
                "row-major elements without gaps: pass np.ascontiguousarray(...)"
            )
        try:
            dtype = dtypes.from_numpy(array.dtype)
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        content = array.reshape(-1).view(np.uint8)
        placed = _Placed(self._next, content, f"{name} {array.shape} {dtype.name}")
        self._arrays.append(placed)
        self._next = (placed.end // _PAGE_BYTES + 2) * _PAGE_BYTES
        return Pointer(placed.address, dtype)

    def block(self, pointer: Pointer, shape: Shape, strides: tuple[int, ...]) -> Array | None:
        """The elements of a block, as a view; None where one of its bytes is in no array."""
        size = pointer.dtype.itemsize
        if 0 in shape:
            return np.empty(shape, pointer.dtype.numpy)
        end = pointer.address + span_bytes(pointer, shape, strides)
        for placed in self._arrays:
            if placed.address <= pointer.address and end <= placed.end:
                offset = pointer.address - placed.address
                steps = tuple(step * size for step in strides)
                return np.ndarray(shape, pointer.dtype.numpy, placed.content, offset, steps)
        return None

    def nearest(self, address: int) -> str:
        """The array below `address`, for a page fault's text."""
        below = [placed for placed in self._arrays if placed.address <= address]
        if not below:
            return "no array is mapped below it"
        placed = below[-1]
        where = f"{placed.name} at {placed.address:#x}+{placed.content.nbytes}"
        if address < placed.end:
            return f"it starts inside array {where} and runs past its end"
        return f"{address - placed.end} bytes past the end of array {where}"


def span_bytes(pointer: Pointer, shape: Shape, strides: tuple[int, ...]) -> int:
    """Bytes from the first to the last element of a block that is not empty."""
    return (
        sum((length - 1) * step for length, step in zip(shape, strides, strict=True)) + 1
    ) * pointer.dtype.itemsize
