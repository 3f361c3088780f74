"""The operands of kernels: pointers to virtual memory, matrices streamed from memory, and values in
TCM.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul
from types import EllipsisType
from typing import Any

import numpy as np

from runtime.core.dtypes import DType
from runtime.core.trace import Operand
from runtime.language.context import running_kernel

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]
Index = slice | EllipsisType | None


@dataclass(frozen=True)
class Pointer:
    """A virtual address with an element type. Arithmetic counts elements: `p + 1` is the next
    element.
    """

    address: int
    dtype: DType

    def __add__(self, elements: int) -> "Pointer":
        return Pointer(self.address + elements * self.dtype.itemsize, self.dtype)

    __radd__ = __add__

    def __sub__(self, elements: int) -> "Pointer":
        return self + -elements

    def __int__(self) -> int:
        return self.address


@dataclass(frozen=True)
class Ref:
    """A matrix in memory that the PE's scheduler streams tile by tile; no data moves until a
    composite uses it.

    `strides` count elements. A `blocked` matrix is stored tile after tile, row by row of tiles,
    each tile row-major without gaps; tiles at the ends have the size of the remainder. So every
    tile is contiguous in memory.
    """

    pointer: Pointer
    shape: tuple[int, int]
    strides: tuple[int, int]
    blocked: bool = False

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.pointer.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return prod(self.shape) * self.dtype.itemsize


class Value:
    """A block of elements in a PE's TCM, from physical address `address` on; `strides` count
    elements.

    `data` is None in a run without data; shape and type always exist. Operators (`+ - * /`, unary
    `-`) run on the PE's math engine and take simulated time.
    """

    __slots__ = ("address", "data", "dtype", "shape", "strides")
    # Makes `array + value` a TypeError; numpy would otherwise apply the operator element by
    # element.
    __array_ufunc__ = None

    def __init__(
        self,
        shape: Shape,
        dtype: DType,
        data: Array | None,
        address: int = 0,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        self.shape, self.dtype, self.data, self.address = shape, dtype, data, address
        self.strides = row_major(shape) if strides is None else strides

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel * self.dtype.itemsize

    @property
    def operand(self) -> Operand:
        """The location of the elements, as the op log records it."""
        # The op log leaves out the strides of contiguous values, which are almost all.
        strides = () if self.strides == row_major(self.shape) else self.strides
        return Operand(self.address, self.shape, self.dtype.name, strides)

    @property
    def T(self) -> "Value":  # noqa: N802 - the name in numpy and torch
        """The transposed matrix, `tl.trans`."""
        return running_kernel().math("trans", (self,))

    def tobytes(self) -> bytes:
        """The elements in row-major order; empty in a run without data."""
        return b"" if self.data is None else self.data.tobytes()

    def to(self, dtype: DType) -> "Value":
        """The elements converted to another type, on the math engine."""
        return running_kernel().math("cast", (self,), dtype=dtype)

    @classmethod
    def from_bytes(
        cls, data: bytes | memoryview, shape: Shape, dtype: DType, address: int = 0
    ) -> "Value":
        """The inverse of `tobytes`; empty `data` makes a value without data."""
        value = cls(shape, dtype, None, address)
        if len(data) == value.nbytes:
            # A run without data sends empty payloads; the value then keeps None.
            value.data = np.frombuffer(data, dtype.numpy).reshape(shape)
        return value

    def __getitem__(self, index: Index | tuple[Index, ...]) -> "Value":
        """A view of contiguous ranges; `None` makes an axis of length 1. It takes no time."""
        axes = list(index) if isinstance(index, tuple) else [index]
        if ... in axes:
            first, named = axes.index(...), sum(isinstance(each, slice) for each in axes)
            axes[first : first + 1] = [slice(None)] * (len(self.shape) - named)
        shape, strides, address, axis = list[int](), list[int](), self.address, 0
        for each in axes:
            if each is None:
                shape.append(1)
                # The only index of an axis of length 1 is 0, so any stride is right.
                strides.append(0)
                continue
            length, stride = self._axis(axis)
            axis += 1
            start, length = _range(each, length)
            shape.append(length)
            strides.append(stride)
            address += start * stride * self.dtype.itemsize
        shape += self.shape[axis:]
        strides += self.strides[axis:]
        data = None if self.data is None else self.data[index]
        return Value(tuple(shape), self.dtype, data, address, tuple(strides))

    def __repr__(self) -> str:
        return f"Value(shape={self.shape}, dtype={self.dtype.name})"

    def __bool__(self) -> bool:
        # A branch on data would differ in a run without data, and its time would be wrong.
        raise TypeError("a value in TCM has no truth value: kernels cannot branch on data")

    def __add__(self, other: "Value | float") -> "Value":
        return running_kernel().math("add", (self, other))

    def __radd__(self, other: float) -> "Value":
        return running_kernel().math("add", (other, self))

    def __sub__(self, other: "Value | float") -> "Value":
        return running_kernel().math("sub", (self, other))

    def __rsub__(self, other: float) -> "Value":
        return running_kernel().math("sub", (other, self))

    def __mul__(self, other: "Value | float") -> "Value":
        return running_kernel().math("mul", (self, other))

    def __rmul__(self, other: float) -> "Value":
        return running_kernel().math("mul", (other, self))

    def __truediv__(self, other: "Value | float") -> "Value":
        return running_kernel().math("div", (self, other))

    def __rtruediv__(self, other: float) -> "Value":
        return running_kernel().math("div", (other, self))

    def __neg__(self) -> "Value":
        return running_kernel().math("mul", (self, -1))

    def _axis(self, axis: int) -> tuple[int, int]:
        if axis == len(self.shape):
            raise IndexError(f"a value of shape {self.shape} has {axis} axes, more are indexed")
        return self.shape[axis], self.strides[axis]


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of a block of `shape` without gaps."""
    return tuple(accumulate(reversed(shape[1:]), mul, initial=1))[::-1] if shape else ()


def _range(index: object, length: int) -> tuple[int, int]:
    if not isinstance(index, slice):
        raise TypeError(f"a value in TCM is indexed with slices and None, not {index!r}")
    start, stop, step = index.indices(length)
    if step != 1:
        raise ValueError(f"a value in TCM can be sliced with step 1 only, not {step}")
    return start, max(stop - start, 0)
