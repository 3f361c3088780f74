"""Operations of a launch whose values are those of earlier ones: equal ones on equal operands.

A number that all PEs load, such as the step of an optimiser, is loaded and computed once.
"""

from collections.abc import Hashable, Sequence

from runtime.core.launch_numbers import LaunchNumber, packed
from runtime.core.trace import Operand, OpRecord
from runtime.language.value import Array
from sip_node.chip.launches.value_operands import LocalOperand


class EqualValues:
    """Numbers of operations, by all on which the elements of their results depend."""

    def __init__(self) -> None:
        self._first: dict[Hashable, int] = {}
        # For an operation with the values of another one, the first one with these.
        self._same: dict[int, int] = {}

    def copy(self, number: int, source: int) -> None:
        """Operation `number` has the result of `source`."""
        self._same[number] = self.first_of(source)

    def first_of(self, number: int) -> int:
        """The first operation with the values of another one."""
        return self._same.get(number, number)

    def computed(
        self, number: int, record: OpRecord, operands: Sequence[LocalOperand | float | Array]
    ) -> int:
        """The earlier operation that has the values of operation `number`, or -1; `operands` are
        its inputs, of which those that are no numbers are results.
        """
        inputs = [
            self._operand(operand) if isinstance(operand, tuple) else _number(record, each)
            for each, operand in zip(record.inputs, operands, strict=True)
        ]
        key = (record.name, record.axis, *_kind(record), *inputs)
        first = self._first.setdefault(key, number)
        if first == number:
            return -1
        self._same[number] = first
        return first

    def loaded(self, number: int, record: OpRecord, written: int) -> int:
        """The earlier load that has the values of a load, or -1; the last operation that has
        written a byte of its blocks is `written`.
        """
        key = (record.name, *_kind(record), *map(_block, record.inputs))
        first = self._first.get(key, -1)
        if first <= written:
            self._first[key] = number
            return -1
        self._same[number] = first
        return first

    def _operand(self, operand: LocalOperand) -> Hashable:
        numbers = tuple(map(self.first_of, operand.numbers))
        return type(operand), numbers, operand.layout


def _number(record: OpRecord, number: Operand | float) -> Hashable:
    assert not isinstance(number, Operand), "a block is an operand"
    if type(number) is LaunchNumber:
        # Other launches may have other numbers on each PE.
        return record.cube, record.pe, id(number.formula)
    return packed((number,))


def _kind(record: OpRecord) -> tuple[Hashable, ...]:
    return record.engine, record.shape, record.dtype


def _block(block: Operand | float) -> Hashable:
    return (
        (block.address, block.shape, block.dtype, block.strides)
        if isinstance(block, Operand)
        else packed((block,))
    )
