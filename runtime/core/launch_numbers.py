"""The numbers of a launch: the floats among its arguments, and what a kernel computes from them.

A formula has the operations of the kernel in their order, so that Python's floats give the bits
that they give in the kernel. Where an operation of an engine takes such a number, its record has a
`LaunchNumber`: the formula is what it will be with the arguments of another launch.
"""

from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple


class GivenNumber(NamedTuple):
    """The float with a place among those of the arguments."""

    place: int

    def of(self, numbers: Sequence[float]) -> float:
        """The number, where the floats of the arguments are `numbers`."""
        return numbers[self.place]


class ComputedNumber(NamedTuple):
    """The result of an operation on numbers, of which one at least is of the arguments."""

    operation: Callable[..., float]
    operands: tuple["NumberFormula | float", ...]

    def of(self, numbers: Sequence[float]) -> float:
        """The number, where the floats of the arguments are `numbers`."""
        return self.operation(
            *[
                each.of(numbers) if isinstance(each, GivenNumber | ComputedNumber) else each
                for each in self.operands
            ]
        )


NumberFormula = GivenNumber | ComputedNumber


class LaunchNumber(float):
    """A number with the formula by which it follows from the arguments of its launch."""

    __slots__ = ("formula",)
    formula: NumberFormula

    @classmethod
    def computed(cls, formula: NumberFormula, numbers: Sequence[float]) -> "LaunchNumber":
        """The number of a formula, where the floats of the arguments are `numbers`."""
        number = cls(formula.of(numbers))
        number.formula = formula
        return number


def number_of_record(number: float) -> float:
    """A number as a record has it: a float, with its formula if there is one."""
    return number if type(number) is LaunchNumber else float(number)


def packed(numbers: Sequence[float]) -> bytes:
    """The bits of numbers: they are equal for equal numbers alone, NaN and -0.0 included."""
    return array("d", numbers).tobytes()


def unpacked(bits: bytes) -> tuple[float, ...]:
    """The numbers that were packed."""
    return tuple(array("d", bits))
