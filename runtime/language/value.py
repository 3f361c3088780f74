"""The operands of kernels: pointers to virtual memory, matrices streamed from memory, and values in
TCM.
"""

from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import accumulate
from math import prod
from operator import index, mul
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import numpy as np
from numpy.lib.stride_tricks import as_strided

from runtime.core.dtypes import DType
from runtime.core.trace import Operand
from runtime.language.operators import ValueOperators
from runtime.language.refusals import (
    OF_TENSORS,
    OF_VALUES,
    POINTER,
    POINTER_ADVICE,
    REF,
    REF_ADVICE,
    VALUE,
    VALUE_ADVICE,
    absent_attribute,
    refuse_assignments,
    refuse_operators,
)
from runtime.language.running import MathOptions, Scope, current_scope, running_engine
from runtime.language.views import (
    Index,
    View,
    expanded,
    reshaped,
    sliced,
    transposed,
    whole_shape,
)

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]
Strides = tuple[int, ...]
"""The elements from an index to the next one, for each axis."""


@dataclass(frozen=True)
class Pointer:
    """A virtual address with an element type. Arithmetic counts elements: `p + 1` is the next
    element.

    Pointers are equal if address and type are. A pointer is never equal or unequal to something
    else: that is a `TypeError`.
    """

    address: int
    dtype: DType

    def __add__(self, elements: int) -> "Pointer":
        # The usual type first: the test of a protocol takes 3 us.
        if type(elements) is int:
            return Pointer(self.address + elements * self.dtype.itemsize, self.dtype)
        return self._moved(elements, 1)

    __radd__ = __add__

    def __sub__(self, elements: int) -> "Pointer":
        return self._moved(elements, -1)

    def __int__(self) -> int:
        return self.address

    def __eq__(self, other: object) -> bool:
        return _equal(self, other, POINTER)

    def __hash__(self) -> int:
        return hash(_fields(self))

    def __bool__(self) -> bool:
        # `if bias:` separates a pointer from None.
        return True

    def _moved(self, elements: int, sign: int) -> "Pointer":
        # A fraction of an element, or elements chosen by a value, would be a wrong address.
        if isinstance(elements, Value | Pointer | Ref) or not isinstance(elements, SupportsIndex):  # pyright: ignore[reportUnnecessaryIsInstance] - kernels are not type-checked
            given = f"{type(elements).__name__} {elements!r}"
            advice = (
                "; there are no blocks of addresses: tl.load(p + start, shape) loads a block"
                if isinstance(elements, Value)
                else ""
            )
            raise TypeError(
                f"a pointer is moved by a whole number of elements, not by {given}{advice}"
            )
        return Pointer(self.address + sign * index(elements) * self.dtype.itemsize, self.dtype)

    if not TYPE_CHECKING:
        # With this method in sight, a type checker would accept every attribute.
        def __getattr__(self, name: str) -> NoReturn:
            raise absent_attribute(POINTER, name, OF_TENSORS, ("address", "dtype"))


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

    @property
    def mT(self) -> "Ref":  # noqa: N802 - the name in numpy and torch
        """The same memory as the transposed matrix; `ValueError` for a blocked matrix."""
        if self.blocked:
            raise ValueError(
                "mT: the tiles of a blocked matrix are those of its operand, row by row; store the "
                "transposed matrix blocked, or a matrix that is not blocked"
            )
        (rows, columns), (down, across) = self.shape, self.strides
        return Ref(self.pointer, (columns, rows), (across, down))

    def __eq__(self, other: object) -> bool:
        return _equal(self, other, REF)

    def __hash__(self) -> int:
        return hash(_fields(self))

    def __bool__(self) -> bool:
        return True

    if not TYPE_CHECKING:
        # With this method in sight, a type checker would accept every attribute.
        def __getattr__(self, name: str) -> NoReturn:
            raise absent_attribute(REF, name, {}, (each.name for each in fields(self)))


class Value(ValueOperators):
    """A block of `numel` elements in a PE's TCM, from physical address `address` on; `strides`
    count elements.

    `data` is None in a run without data; shape and type always exist. Operators (`+ - * / **`,
    unary `-`, `& | ^ ~`, comparisons) run on the PE's math engine and take simulated time; a
    comparison is a value of bools. Every other operator, and each use of elements in Python or
    numpy, is a `TypeError` with advice.
    """

    __slots__ = (
        *("_extent", "_located", "address", "data", "dtype", "numel", "scope", "shape", "strides"),
    )
    data: Array | None
    shape: Shape
    dtype: DType
    address: int
    strides: tuple[int, ...]
    scope: Scope | None
    numel: int
    _located: Operand | None
    _extent: tuple[int, int] | None

    def __init__(
        self,
        shape: Shape,
        dtype: DType,
        data: Array | None,
        address: int = 0,
        strides: tuple[int, ...] | None = None,
        scope: Scope | None = None,
    ) -> None:
        _set_data(self, data)
        # The others describe memory that exists: `__setattr__` refuses to change them.
        _set_shape(self, shape)
        _set_dtype(self, dtype)
        _set_numel(self, prod(shape))
        _set_located(self, None)
        _set_extent(self, None)
        _set_address(self, address)
        _set_strides(self, row_major(shape) if strides is None else strides)
        _set_scope(self, scope or current_scope.get())

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel * self.dtype.itemsize

    @property
    def operand(self) -> Operand:
        """The location of the elements, as the op log records it."""
        located = self._located
        if located is None:
            # The op log leaves out the strides of contiguous values, which are almost all.
            strides = () if self.strides == row_major(self.shape) else self.strides
            located = Operand(self.address, self.shape, self.dtype.name, strides)
            _set_located(self, located)
        return located

    @property
    def extent(self) -> tuple[int, int]:
        """The address of the first byte, and that behind the last one; equal if it is empty."""
        extent = self._extent
        if extent is None:
            # Once for a value, which each command compares with all operations in flight.
            extent = self.address, self.address + span_bytes(self.shape, self.strides, self.dtype)
            _set_extent(self, extent)
        return extent

    def shares_bytes(self, other: "Value") -> bool:
        """Whether the extents of two values overlap; gaps between rows belong to an extent."""
        (start, end) = self._extent or self.extent
        (first, behind) = other._extent or other.extent  # noqa: SLF001 - of this class
        return start < behind and first < end

    @property
    def T(self) -> "Value":  # noqa: N802 - the name in numpy and torch
        """The transposed matrix, `tl.trans`: a copy. `mT` is a view."""
        return running_engine().math("trans", (self,))

    @property
    def mT(self) -> "Value":  # noqa: N802 - the name in numpy and torch
        """A view with the last two axes exchanged, which takes no time; an operand of any
        operation, and of `tl.dot`, like the value itself.
        """
        view = transposed(self.shape, self.strides)
        return _view_of(self, view, None if self.data is None else self.data.swapaxes(-1, -2))

    def reshape(self, *shape: int | Shape) -> "Value":
        """The elements in row-major order with another shape, in which one length may be -1.

        A view, which takes no time, where strides can describe it: always, if the elements have no
        gaps. Else it is made from a copy, whose time is that of `tl.cat`.
        """
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        whole = whole_shape(self.shape, given)
        view, source = reshaped(self.shape, self.strides, whole), self
        if view is None:
            source = running_engine().math("cat", (self,))
            view = View(whole, row_major(whole))
        return _view_of(source, view, None if source.data is None else source.data.reshape(whole))

    def expand_dims(self, axis: int) -> "Value":
        """A view with a new axis of length 1, as number `axis` of the result."""
        view = expanded(self.shape, self.strides, axis)
        return _view_of(self, view, None if self.data is None else self.data.reshape(view.shape))

    def tobytes(self) -> bytes:
        """The elements in row-major order; empty in a run without data."""
        return b"" if self.data is None else self.data.tobytes()

    def fill(self, array: Array) -> None:
        """Set the elements; views of this value, which share them, show them too."""
        if self.data is None:
            self.data = array
        else:
            self.data[...] = array

    def to(self, dtype: DType) -> "Value":
        """The elements converted to another type, on the math engine."""
        return running_engine().math("cast", (self,), MathOptions(dtype=dtype))

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
        return _view_of(
            self,
            sliced(self.shape, self.strides, index),
            None if self.data is None else self.data[index],
        )

    def __repr__(self) -> str:
        return f"Value(shape={self.shape}, dtype={self.dtype.name})"

    def __format__(self, spec: str) -> str:
        if spec:
            raise TypeError(f"{VALUE} has no format {spec!r}: its elements are not known here")
        return repr(self)

    def __setattr__(self, name: str, fact: object) -> None:
        if name != "data":
            advice = "x.to(dtype) converts, x[...] selects"
            raise TypeError(f"{name!r} of a value in TCM cannot be set: {advice}")
        _set_data(self, fact)

    if not TYPE_CHECKING:
        # With this method in sight, a type checker would accept every attribute.
        def __getattr__(self, name: str) -> NoReturn:
            known = [each for each in dir(type(self)) if not each.startswith("_")]
            raise absent_attribute(VALUE, name, OF_VALUES, known)


# The slots of a value, which `__setattr__` guards: a value is made in half the time without it.
_FIRST, _SECOND = ("data", "shape", "dtype", "numel"), ("_located", "_extent", "address", "strides")
_set_data, _set_shape, _set_dtype, _set_numel = (Value.__dict__[name].__set__ for name in _FIRST)
_set_located, _set_extent, _set_address, _set_strides = (
    Value.__dict__[name].__set__ for name in _SECOND
)
_set_scope = Value.__dict__["scope"].__set__


def _view_of(value: Value, view: View, data: Array | None) -> Value:
    address = value.address + view.offset * value.dtype.itemsize
    return _ValuePart(view.shape, value.dtype, data, address, view.strides, value.scope)


def part_of(value: Value, view: View) -> Value:
    """A view of a value whose elements have no gaps."""
    data = value.data
    if data is not None:
        shape, strides, first = view
        if strides == row_major(shape):
            data = data.reshape(-1)[first : first + prod(shape)].reshape(shape)
        else:
            steps = [stride * data.itemsize for stride in strides]
            data = as_strided(data.reshape(-1)[first:], shape, steps)
    return _view_of(value, view, data)


class _ValuePart(Value):
    """A view of a value, whose elements it shares."""

    __slots__ = ()


refuse_operators(Pointer, POINTER, POINTER_ADVICE)
refuse_operators(Ref, REF, REF_ADVICE)
refuse_operators(Value, VALUE, VALUE_ADVICE)
refuse_assignments(_ValuePart)


def check_exists(value: Value, operation: str) -> None:
    """`ValueError` for a value whose scratch has been freed, or is that of another kernel."""
    if value.scope is not None and not value.scope.has(current_scope.get()):
        raise ValueError(
            f"{operation}: {value!r} does not exist here: the kernel, its block `with "
            "tl.scratch():` or its fused function, in which it was made, has ended, and its "
            "memory may hold other values; make it before the block, or store it inside"
        )


# Programs have few shapes, and every value and block is compared with its row-major strides.
@lru_cache(maxsize=4096)
def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a block of `shape` without gaps."""
    return tuple(accumulate(reversed(shape[1:]), mul, initial=1))[::-1] if shape else ()


def span_bytes(shape: Shape, strides: tuple[int, ...], dtype: DType) -> int:
    """Bytes from the first to the last element of a block, both included."""
    return _span(shape, strides) * dtype.itemsize


# As above: each command computes the spans of its blocks and values.
@lru_cache(maxsize=4096)
def _span(shape: Shape, strides: tuple[int, ...]) -> int:
    """Elements from the first to the last one of a block, both included."""
    if 0 in shape:
        return 0
    return 1 + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))


def _equal(operand: Pointer | Ref, other: object, what: str) -> bool:
    if type(other) is not type(operand):
        given = f"{type(other).__name__} {other!r}"
        raise TypeError(f"== and != of {what} are defined with another one, not with {given}")
    return _fields(operand) == _fields(other)


def _fields(operand: Pointer | Ref) -> tuple[object, ...]:
    return tuple(getattr(operand, each.name) for each in fields(operand))
