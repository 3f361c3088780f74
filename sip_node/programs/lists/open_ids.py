"""The ids of a program while its kernel is recorded: integers that stay open in the list.

A kernel computes its place from its ids: it multiplies and adds them, divides multiples of them,
and moves pointers. That is all that an open id does, so that one list serves all programs. Each
other use reads the id, such as a comparison or an index, and ends the recording with `ReadsId`;
then the list is one for the ids on these axes.
"""

from collections.abc import Mapping
from typing import NoReturn

from sip_node.programs.lists.not_listed import ReadsId


class OpenId:
    """The sum of `number` and, for each axis, `factors` times the id on that axis."""

    __slots__ = ("factors", "number")

    def __init__(self, factors: Mapping[int, int], number: int = 0) -> None:
        self.factors, self.number = factors, number

    def __add__(self, other: object) -> "OpenId":
        if type(other) is int:
            return OpenId(self.factors, self.number + other)
        if not isinstance(other, OpenId):
            return self._read()
        axes = sorted({*self.factors, *other.factors})
        factors = {axis: self.factors.get(axis, 0) + other.factors.get(axis, 0) for axis in axes}
        return OpenId(factors, self.number + other.number)

    __radd__ = __add__

    def __mul__(self, other: object) -> "OpenId":
        if type(other) is not int:
            return self._read()
        factors = {axis: factor * other for axis, factor in self.factors.items()}
        return OpenId(factors, self.number * other)

    __rmul__ = __mul__

    def __neg__(self) -> "OpenId":
        return self * -1

    def __sub__(self, other: object) -> "OpenId":
        return self + -other if isinstance(other, int | OpenId) else self._read()

    def __rsub__(self, other: object) -> "OpenId":
        return -self + other

    def __floordiv__(self, other: object) -> "OpenId":
        divisor = self._common_divisor(other)
        factors = {axis: factor // divisor for axis, factor in self.factors.items()}
        return OpenId(factors, self.number // divisor)

    def __mod__(self, other: object) -> int:
        return self.number % self._common_divisor(other)

    def __divmod__(self, other: object) -> "tuple[OpenId, int]":
        return self // other, self % other

    def _common_divisor(self, other: object) -> int:
        """A divisor of all factors: the rest depends on no id."""
        if type(other) is int and other and not any(each % other for each in self.factors.values()):
            return other
        return self._read()

    def _read(self, *_: object) -> NoReturn:
        raise ReadsId(tuple(sorted(self.factors)))

    __bool__ = __int__ = __float__ = __index__ = __hash__ = __str__ = __repr__ = _read
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __format__ = _read
    __rfloordiv__ = __truediv__ = __rtruediv__ = __rmod__ = __rdivmod__ = _read
    __pow__ = __rpow__ = __lshift__ = __rlshift__ = _read
    __rshift__ = __rrshift__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _read
    __invert__ = __abs__ = __round__ = __trunc__ = __floor__ = __ceil__ = __pos__ = _read
