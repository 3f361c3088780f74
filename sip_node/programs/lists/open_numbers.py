"""The floats among the arguments of a kernel while it is recorded: they stay open in the list.

A kernel passes a number on to the engines, or computes another one from it by sums, differences,
products, and quotients by constants, which Python's floats define to the last bit. That is all that
an open number does, so that one list serves all launches which differ in their numbers. Each other
use reads the number, such as a comparison, a function of `math` or a text, and ends the recording
with `ReadsNumber`; then the list is one for this number.

An open number is no float for the interpreter, whose functions in C would take the value of one
without a call. It states the class `float`, which the key of the launch has too: what depends on
the type alone reads nothing.
"""

import operator
from collections.abc import Callable
from typing import Any, NoReturn

from runtime.core.launch_numbers import ComputedNumber, GivenNumber, NumberFormula
from runtime.language.value import Value
from sip_node.programs.lists.not_listed import ReadsNumber

MOST_OPERATIONS = 64
"""The operations of a formula; of a longer one, such as that of a loop, the numbers are read."""


class OpenNumber:
    """The number of a formula, which has `operations`, of the arguments with `places`."""

    __slots__ = ("formula", "operations", "places")

    def __init__(self, formula: NumberFormula, places: frozenset[int], operations: int = 0) -> None:
        self.formula, self.places, self.operations = formula, places, operations

    @classmethod
    def given(cls, place: int) -> "OpenNumber":
        """The float with a place among those of the arguments."""
        return cls(GivenNumber(place), frozenset((place,)))

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride] - read only
        """The class for `isinstance`, and for patterns."""
        return float

    def _read(self, *_: object) -> NoReturn:
        raise ReadsNumber(self.places)

    def _computed(self, function: Callable[..., float], *operands: object) -> Any:
        """An operation of which each operand is this number or another one."""
        formulas, places, operations = list["NumberFormula | float"](), frozenset[int](), 1
        for each in operands:
            kind = type(each)
            if kind is OpenNumber:
                number: Any = each
                formulas.append(number.formula)
                places |= number.places
                operations += number.operations
            elif kind is float or kind is int:
                # As in the arithmetic of floats, which converts integers.
                formulas.append(float(each))  # pyright: ignore[reportArgumentType] - a number
            elif isinstance(each, Value):
                return NotImplemented
            else:
                self._read()
        if operations > MOST_OPERATIONS:
            raise ReadsNumber(places)
        return OpenNumber(ComputedNumber(function, tuple(formulas)), places, operations)

    def __add__(self, other: object) -> Any:
        return self._computed(operator.add, self, other)

    def __radd__(self, other: object) -> Any:
        return self._computed(operator.add, other, self)

    def __sub__(self, other: object) -> Any:
        return self._computed(operator.sub, self, other)

    def __rsub__(self, other: object) -> Any:
        return self._computed(operator.sub, other, self)

    def __mul__(self, other: object) -> Any:
        return self._computed(operator.mul, self, other)

    def __rmul__(self, other: object) -> Any:
        return self._computed(operator.mul, other, self)

    def __truediv__(self, other: object) -> Any:
        # A divisor is read, since a quotient by 0 is an error.
        if type(other) is OpenNumber:
            other._read()
        return self._read() if _is_zero(other) else self._computed(_quotient, self, other)

    def __neg__(self) -> Any:
        return self._computed(_negative, self)

    def __pos__(self) -> "OpenNumber":
        return self

    def _compared(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Value) else self._read()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compared
    __pow__ = __rtruediv__ = _compared
    __bool__ = __int__ = __float__ = __complex__ = __hash__ = __str__ = __repr__ = _read
    __format__ = __abs__ = __round__ = __trunc__ = __floor__ = __ceil__ = __rpow__ = _read
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = _read
    __array_ufunc__ = __array__ = __reduce_ex__ = __copy__ = __deepcopy__ = __getattr__ = _read


def _quotient(dividend: float, divisor: float) -> float:
    return dividend / divisor


def _negative(number: float) -> float:
    return -number


def _is_zero(other: object) -> bool:
    return type(other) in (int, float) and other == 0
