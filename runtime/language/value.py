"""What a kernel computes with: pointers into virtual memory and values in TCM."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from runtime.dtypes import DType
from runtime.language.context import running_kernel

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Pointer:
    """A virtual address with an element type. Arithmetic counts elements: `p + 1` is the next element."""

    address: int
    dtype: DType

    def __add__(self, elements: int) -> "Pointer":
        return Pointer(self.address + elements * self.dtype.itemsize, self.dtype)

    __radd__ = __add__

    def __sub__(self, elements: int) -> "Pointer":
        return self + -elements

    def __int__(self) -> int:
        return self.address


class Value:
    """A block of elements in a PE's TCM. `data` is None in a run without data; shape and type are always known.

    Operators (`+ - * /`, unary `-`) run on the PE's math engine and take simulated time.
    """

    __slots__ = ("data", "dtype", "shape")

    def __init__(self, shape: Shape, dtype: DType, data: Array | None) -> None:
        self.shape, self.dtype, self.data = shape, dtype, data

    @property
    def numel(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes in TCM."""
        return self.numel * self.dtype.itemsize

    def tobytes(self) -> bytes:
        """The elements in row-major order; empty in a run without data."""
        return b"" if self.data is None else self.data.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, shape: Shape, dtype: DType) -> "Value":
        """The inverse of `tobytes`; elements without bytes make a value without data."""
        value = cls(shape, dtype, None)
        if len(data) == value.nbytes:
            value.data = np.frombuffer(data, dtype.numpy).reshape(shape)
        return value

    def __getitem__(self, index: slice) -> "Value":
        """A view of a contiguous range of the first axis; it costs nothing."""
        start, stop, step = index.indices(self.shape[0])
        if step != 1:
            raise ValueError(f"a value in TCM can be sliced with step 1 only, not {step}")
        data = None if self.data is None else self.data[start:stop]
        return Value((max(stop - start, 0), *self.shape[1:]), self.dtype, data)

    def __repr__(self) -> str:
        return f"Value(shape={self.shape}, dtype={self.dtype.name})"

    def __bool__(self) -> bool:
        raise TypeError("a value in TCM has no truth value: kernels cannot branch on data")

    def __add__(self, other: "Value | float") -> "Value":
        return running_kernel().math("add", (self, other))

    def __radd__(self, other: float) -> "Value":
        return running_kernel().math("add", (self, other))

    def __sub__(self, other: "Value | float") -> "Value":
        return running_kernel().math("sub", (self, other))

    def __rsub__(self, other: float) -> "Value":
        return running_kernel().math("sub", (other, self))

    def __mul__(self, other: "Value | float") -> "Value":
        return running_kernel().math("mul", (self, other))

    def __rmul__(self, other: float) -> "Value":
        return running_kernel().math("mul", (self, other))

    def __truediv__(self, other: "Value | float") -> "Value":
        return running_kernel().math("div", (self, other))

    def __rtruediv__(self, other: float) -> "Value":
        return running_kernel().math("div", (other, self))

    def __neg__(self) -> "Value":
        return running_kernel().math("mul", (self, -1))
