"""The operators of values: each is an operation of the vector engine of the running kernel's PE."""

from typing import Any, Self

from runtime.core.dtypes import DType
from runtime.language.running import running_engine


class ValueOperators:  # noqa: PLW1641 - the class of values has a hash, which refuses
    """`+ - * / **`, unary `-` and `+`, `& | ^ ~`, and comparisons.

    A comparison is a value of bools, at whose truth value Python's searches fail.
    """

    __slots__ = ()
    dtype: DType

    def __add__(self, other: Self | float) -> Self:
        return _computed("add", self, other)

    def __radd__(self, other: float) -> Self:
        return _computed("add", other, self)

    def __sub__(self, other: Self | float) -> Self:
        return _computed("sub", self, other)

    def __rsub__(self, other: float) -> Self:
        return _computed("sub", other, self)

    def __mul__(self, other: Self | float) -> Self:
        return _computed("mul", self, other)

    def __rmul__(self, other: float) -> Self:
        return _computed("mul", other, self)

    def __truediv__(self, other: Self | float) -> Self:
        return _computed("div", self, other)

    def __rtruediv__(self, other: float) -> Self:
        return _computed("div", other, self)

    def __pow__(self, other: Self | float) -> Self:
        return _computed("pow", self, other)

    def __rpow__(self, other: float) -> Self:
        return _computed("pow", other, self)

    def __neg__(self) -> Self:
        return _computed("mul", self, -1)

    def __pos__(self) -> Self:
        return self

    def __and__(self, other: Self | int) -> Self:
        return _computed("bitwise_and", self, other)

    def __or__(self, other: Self | int) -> Self:
        return _computed("bitwise_or", self, other)

    def __xor__(self, other: Self | int) -> Self:
        return _computed("bitwise_xor", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Self:
        return self ^ self.dtype.all_ones

    def __eq__(self, other: object) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride] - as in numpy
        return _computed("eq", self, other)

    def __ne__(self, other: object) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride] - as in numpy
        return _computed("ne", self, other)

    def __lt__(self, other: Self | float) -> Self:
        return _computed("lt", self, other)

    def __le__(self, other: Self | float) -> Self:
        return _computed("le", self, other)

    def __gt__(self, other: Self | float) -> Self:
        return _computed("gt", self, other)

    def __ge__(self, other: Self | float) -> Self:
        return _computed("ge", self, other)


def _computed(name: str, *operands: object) -> Any:
    return running_engine().math(name, operands)
