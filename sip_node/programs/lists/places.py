"""The places that a command list leaves open, and what they stand for on one PE.

A pointer is named by the argument that it is based on, a value by the number of the command's
result, an operation by the number of its start.
"""

from collections.abc import Sequence
from typing import NamedTuple

from runtime.core.dtypes import DType, uint8
from runtime.core.launch_numbers import (
    ComputedNumber,
    GivenNumber,
    LaunchNumber,
    NumberFormula,
)
from runtime.language.memory_in_flight import UsedBlock
from runtime.language.rows import RowGather, RowList
from runtime.language.value import Pointer, Ref, Shape, Strides, Value, part_of
from runtime.language.views import View
from sip_node.programs.kernel_context import KernelCommands
from sip_node.programs.kernel_operation import Operation


class PointerPlace(NamedTuple):
    """A pointer behind that with the number `base` among those of the arguments: by `nbytes`, and
    by (axis, bytes) for each program before this one on an axis.
    """

    base: int
    nbytes: int
    by_id: tuple[tuple[int, int], ...]
    dtype: DType


class BlockPlace(NamedTuple):
    """A block of memory behind a pointer."""

    pointer: PointerPlace
    shape: Shape
    strides: Strides


class ValuePlace(NamedTuple):
    """The value that the list has made as number `number`, or a view of it."""

    number: int
    view: View | None = None


class MessagePlace(NamedTuple):
    """The message of a receive in place with a number among the operations, or a view of it."""

    operation: int
    view: View | None = None


ListedValue = ValuePlace | MessagePlace
"""A value in TCM."""

ListedOperand = ListedValue | NumberFormula | float
"""An operand of the vector engine: a value, a number that follows from those of the launch, or a
number of the kernel.
"""


class StepPlace(NamedTuple):
    """The result of a step of a chain, or a view of it."""

    number: int
    view: View | None = None


class RefPlace(NamedTuple):
    """A matrix in memory, whose pointer is based on an argument."""

    pointer: PointerPlace
    ref: Ref


def view_of(value: Value, part: Value) -> View | None:
    """The layout of a view; None if it is the value itself."""
    nbytes = part.address - value.address
    if not nbytes and (part.shape, part.strides) == (value.shape, value.strides):
        return None
    return View(part.shape, part.strides, nbytes // value.dtype.itemsize)


_ENDED = Value((0,), uint8, None)


class ListRun:
    """A list on one PE: the `addresses` of its pointers, the `numbers` of its arguments, and what
    its commands have made so far.

    `ids` are those of the program. The results of chains have addresses from `registers` on.
    """

    def __init__(
        self,
        kernel: KernelCommands,
        addresses: Sequence[int],
        numbers: Sequence[float],
        ids: Sequence[int],
        registers: int,
        *,
        has_data: bool,
    ) -> None:
        self.kernel, self.addresses, self.registers = kernel, addresses, registers
        self._numbers = numbers
        self.ids, self.has_data = ids, has_data
        self.values: list[Value] = []
        self.operations: dict[int, Operation] = {}
        # The receives in place, whose results are the messages.
        self.messages: dict[int, Operation] = {}
        # The address at which each scope of scratch begins, and the number of values before it.
        self.scopes: list[tuple[int, int]] = []

    def pointer(self, place: PointerPlace) -> Pointer:
        """A pointer to memory."""
        address = self.addresses[place.base] + place.nbytes
        for axis, nbytes in place.by_id:
            address += self.ids[axis] * nbytes
        return Pointer(address, place.dtype)

    def block(self, place: BlockPlace) -> UsedBlock:
        """A block of memory."""
        return UsedBlock(self.pointer(place.pointer), place.shape, place.strides)

    def rows(self, place: BlockPlace, rows: RowList) -> RowGather:
        """Rows of a matrix in memory."""
        return RowGather(self.pointer(place.pointer), rows, place.shape, place.strides)

    def value(self, place: ListedValue) -> Value:
        """A value in TCM."""
        if isinstance(place, MessagePlace):
            value = self.messages[place.operation].value
        else:
            value = self.values[place.number]
        return value if place.view is None else part_of(value, place.view)

    def vector_operand(self, place: ListedOperand) -> Value | float:
        """An operand of the vector engine."""
        if isinstance(place, ValuePlace | MessagePlace):
            return self.value(place)
        if isinstance(place, GivenNumber | ComputedNumber):
            return LaunchNumber.computed(place, self._numbers)
        return place

    def out(self, place: ListedValue | None) -> Value | None:
        """The value that a result is written over, if any."""
        return None if place is None else self.value(place)

    def operand(self, place: ListedValue | RefPlace) -> Value | Ref:
        """An operand of a product."""
        if isinstance(place, RefPlace):
            ref = place.ref
            return Ref(self.pointer(place.pointer), ref.shape, ref.strides, ref.blocked)
        return self.value(place)

    def end_values(self, numbers: Sequence[int]) -> None:
        """No command uses the values with `numbers` any more: they keep their numbers."""
        for number in numbers:
            self.values[number] = _ENDED

    def made(self, value: Value, over: ListedValue | None) -> None:
        """Number a value, unless it is one that a result was written over."""
        if over is None:
            self.values.append(value)
