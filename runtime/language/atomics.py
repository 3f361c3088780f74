"""Read-modify-writes of memory: an operation on the elements of a block, at the memory that has
them.

An element is read, combined and written at one instant, so no other command sees it in between.
Operations of several PEs on one element come one after the other, in the order in which its memory
serves them.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypedDict

import numpy as np

from runtime.core.dtypes import DType
from runtime.core.errors import nearest
from runtime.language.memory_in_flight import UsedBlock
from runtime.language.operations import compute
from runtime.language.shapes import (
    check_apart,
    checked_out,
    checked_pointer,
    checked_strides,
    checked_value,
)
from runtime.language.value import Array, Pointer, Strides, Value

_INTEGERS = ("i32", "i64")
_NUMBERS = ("f16", "bf16", "f32", "f64", *_INTEGERS)
_BITS: Mapping[int, str] = {2: "u2", 4: "u4", 8: "u8"}
ORDERS: Mapping[str, tuple[bool, bool]] = {
    "relaxed": (False, False),
    "acquire": (True, False),
    "release": (False, True),
    "acq_rel": (True, True),
}
"""Whether an atomic acquires and whether it releases, by its `sem`."""


def _of_engine(name: str) -> Callable[[DType, Array, Array], Array]:
    """The function of the vector engine with a name."""
    return lambda dtype, old, value: compute(name, (old, value), dtype)


def _of_unsigned(
    function: Callable[[Array, Array], Array],
) -> Callable[[DType, Array, Array], Array]:
    def combined(dtype: DType, old: Array, value: Array) -> Array:
        bits = _BITS[dtype.itemsize]
        return function(old.view(bits), value.view(bits)).view(dtype.numpy)

    return combined


OPERATIONS: Mapping[str, tuple[tuple[str, ...], Callable[[DType, Array, Array], Array]]] = {
    "add": (_NUMBERS, _of_engine("add")),
    "max": (_NUMBERS, _of_engine("maximum")),
    "min": (_NUMBERS, _of_engine("minimum")),
    "umax": (_INTEGERS, _of_unsigned(np.maximum)),
    "umin": (_INTEGERS, _of_unsigned(np.minimum)),
    "and": (_INTEGERS, _of_engine("bitwise_and")),
    "or": (_INTEGERS, _of_engine("bitwise_or")),
    "xor": (_INTEGERS, _of_engine("bitwise_xor")),
    "xchg": (_NUMBERS, lambda _, __, value: value),
    "cas": (_NUMBERS, lambda _, __, value: value),
}
"""The element types of each operation, and the new elements from the old ones and the operand.

`umax` and `umin` compare integers without a sign; `cas` writes where the old bits are those of
`compare`.
"""


class AtomicOptions(TypedDict, total=False):
    """The keywords of an atomic operation."""

    compare: Value
    out: Value
    old: bool
    sem: str


class AtomicCall(NamedTuple):
    """A read-modify-write of the block at `pointer` that has the shape of `value`.

    The old elements go to a new value or over `out` if the kernel `reads` them. What the kernel has
    stored before is before one that `releases`; one that `acquires` is behind all that the earlier
    operations on its elements have released.
    """

    operation: str
    pointer: Pointer
    value: Value
    strides: Strides
    compare: Value | None = None
    out: Value | None = None
    reads: bool = True
    acquires: bool = True
    releases: bool = True

    @property
    def operands(self) -> tuple[Value, ...]:
        """The values that it sends to the memory."""
        return (self.value,) if self.compare is None else (self.value, self.compare)

    @property
    def sem(self) -> str:
        """The word for its order."""
        order = self.acquires, self.releases
        return next(word for word, each in ORDERS.items() if each == order)

    @property
    def block(self) -> UsedBlock:
        """The elements in memory."""
        return UsedBlock(self.pointer, self.value.shape, self.strides)


def combined(operation: str, dtype: DType, old: bytes, given: bytes | memoryview) -> bytes:
    """The new bytes of elements; `given` are those of the operand, and behind them of `compare`."""
    before = np.frombuffer(old, dtype.numpy)
    value = np.frombuffer(given, dtype.numpy, len(before))
    after = OPERATIONS[operation][1](dtype, before, value)
    if operation == "cas":
        bits = _BITS[dtype.itemsize]
        compare = np.frombuffer(given, bits, len(before), len(old))
        after = np.where(before.view(bits) == compare, after.view(bits), before.view(bits))
    return after.tobytes()


def check_types(name: str, operation: str, dtype: DType) -> None:
    """`ValueError` for an operation that memories lack, `TypeError` for elements that it lacks."""
    if operation not in OPERATIONS:
        raise ValueError(f"{name}: no operation {operation!r}{nearest(operation, OPERATIONS)}")
    types, _ = OPERATIONS[operation]
    if dtype.name not in types:
        raise TypeError(
            f"{name} {operation!r} of {dtype.name}: a memory has it for {', '.join(types)}"
        )


def _check_compare(name: str, operation: str, operand: Value, compare: Value | None) -> None:
    if (operation == "cas") != (compare is not None):
        raise ValueError(f"{name}: compare= is a value of 'cas', and of no other operation")
    if compare is not None:
        checked_value(compare, name)
        if (compare.shape, compare.dtype) != (operand.shape, operand.dtype):
            raise ValueError(f"{name}: compare, {compare!r}, is unlike the value, {operand!r}")


def checked_atomic(
    name: str,
    operation: str,
    pointer: Pointer,
    value: Value,
    strides: tuple[int, ...] | None,
    options: AtomicOptions,
) -> AtomicCall:
    """The call of `tl.atomic` with these arguments; `name` is that of the function."""
    target, operand = checked_pointer(pointer, name), checked_value(value, name)
    dtype, compare, out = target.dtype, options.get("compare"), options.get("out")
    old, sem = options.get("old", True), options.get("sem", "acq_rel")
    for each in options:
        if each not in AtomicOptions.__annotations__:
            raise TypeError(f"{name} has no argument {each!r}")
    check_types(name, operation, dtype)
    if operand.dtype != dtype:
        raise TypeError(
            f"{name} with {operand.dtype.name} through a pointer to {dtype.name}: convert with "
            "x.to(dtype) before"
        )
    _check_compare(name, operation, operand, compare)
    if sem not in ORDERS:
        raise ValueError(f"{name}: sem {sem!r} is none of {', '.join(ORDERS)}")
    if out is not None:
        checked_out(out, operand.shape, dtype, name)
        check_apart(out, (operand, compare), name)
        if not old:
            raise ValueError(f"{name}: out= takes the old elements, which old=False leaves out")
    steps = checked_strides(strides, operand.shape)
    return AtomicCall(operation, target, operand, steps, compare, out, old, *ORDERS[sem])
