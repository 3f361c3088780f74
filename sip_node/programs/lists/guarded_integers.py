"""Program ids and addresses of a kernel that takes decisions by them, while it is recorded.

A `GuardedInteger` has the value of the recorded program, and stays open in the list: sums,
differences and products with integers are open again. A comparison has the result of the recorded
program, and leaves a *guard*: the range of a sum of ids and addresses in which it has that result.
The list serves all programs whose ids and addresses keep its guards:

    offsets = program_id * 1024 + ...        open
    mask = offsets < n                       all true: a guard, program_id * 1024 <= n - 1024

Any other use, such as an index, reads the value: its range is that value alone.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from runtime.core.program_grid import MOST_AXES

Form = tuple[tuple[int, int], ...]
"""A sum of variables with factors, as (variable, factor): ids by their axis, then addresses by the
place of their pointer among the arguments.
"""


class ListGuard(NamedTuple):
    """A sum of variables that is in a range, both ends included; or, with a `period`, one that has
    the remainder `low`.
    """

    form: Form
    low: int
    high: int
    period: int = 0

    def holds(self, values: Sequence[int]) -> bool:
        """Whether variables with `values` keep the guard."""
        total = 0
        for variable, factor in self.form:
            total += factor * values[variable]
        if self.period:
            return total % self.period == self.low
        return self.low <= total <= self.high


def variables(ids: Sequence[int], addresses: Sequence[int]) -> tuple[int, ...]:
    """The values of the variables of a program."""
    return (*ids, *[0] * (MOST_AXES - len(ids)), *addresses)


class OpenVariables:
    """The variables of a program that is recorded, and the guards of what it reads of them."""

    def __init__(self, values: Sequence[int]) -> None:
        self.values = values
        self._ranges: dict[Form, tuple[int, int]] = {}
        self._remainders: dict[tuple[Form, int], int] = {}

    def program_id(self, axis: int) -> "GuardedInteger":
        """The id of the program on an axis."""
        return GuardedInteger(self, {axis: 1}, 0)

    def address(self, base: int, nbytes: int) -> "GuardedInteger":
        """The address `nbytes` behind that of the pointer with number `base`."""
        return GuardedInteger(self, {MOST_AXES + base: 1}, nbytes)

    def require(self, form: Form, low: int | None, high: int | None) -> None:
        """The recorded program depends on a sum being in a range; None for an open end."""
        least, greatest = self._ranges.get(form, (-(1 << 64), 1 << 64))
        self._ranges[form] = (
            least if low is None else max(least, low),
            greatest if high is None else min(greatest, high),
        )

    def require_remainder(self, form: Form, period: int, remainder: int) -> None:
        """The recorded program depends on a remainder of a sum."""
        self._remainders[form, period] = remainder

    def guards(self) -> tuple[ListGuard, ...]:
        """All that the program has read."""
        return (
            *[ListGuard(form, low, high) for form, (low, high) in self._ranges.items()],
            *[
                ListGuard(form, each, each, period)
                for (form, period), each in self._remainders.items()
            ],
        )


class GuardedInteger:
    """The sum of `number` and, for each variable, `factors` times its value."""

    __slots__ = ("factors", "number", "value", "variables")

    def __init__(self, variables: OpenVariables, factors: Mapping[int, int], number: int) -> None:
        self.variables, self.factors, self.number = variables, factors, number
        values = variables.values
        self.value = number + sum(factor * values[each] for each, factor in factors.items())

    def __index__(self) -> int:
        self._require(self.value, self.value)
        return self.value

    __int__ = __index__

    def __float__(self) -> float:
        return float(int(self))

    def __str__(self) -> str:
        return str(int(self))

    def __add__(self, other: Any) -> Any:
        if type(other) is int:
            return GuardedInteger(self.variables, self.factors, self.number + other)
        if not isinstance(other, GuardedInteger):
            return int(self) + other
        factors = dict(self.factors)
        for each, factor in other.factors.items():
            factors[each] = factors.get(each, 0) + factor
        return self._sum(factors, self.number + other.number)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        if type(other) is not int:
            return int(self) * (int(other) if isinstance(other, GuardedInteger) else other)
        factors = {each: factor * other for each, factor in self.factors.items()}
        return self._sum(factors, self.number * other)

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __lshift__(self, other: Any) -> Any:
        return self * 2 ** int(other)

    def __rshift__(self, other: Any) -> Any:
        return self // 2 ** int(other)

    def __floordiv__(self, other: Any) -> Any:
        period = int(other)
        if all(factor % period == 0 for factor in self.factors.values()):
            whole = {each: factor // period for each, factor in self.factors.items()}
            return GuardedInteger(self.variables, whole, self.number // period)
        quotient = self.value // period
        ends = quotient * period, quotient * period + period
        self._require(*((ends[0], ends[1] - 1) if period > 0 else (ends[1] + 1, ends[0])))
        return quotient

    def __mod__(self, other: Any) -> Any:
        period = int(other)
        left = {each: factor % period for each, factor in self.factors.items() if factor % period}
        if any(each >= MOST_AXES for each in left):
            form = tuple(sorted(left.items()))
            total = sum(factor * self.variables.values[each] for each, factor in form)
            self.variables.require_remainder(form, period, total % period)
            return self.value % period
        return self - (self // period) * period if left else self.number % period

    def __lt__(self, other: Any) -> bool:
        return self._is_below(other, 0)

    def __le__(self, other: Any) -> bool:
        return self._is_below(other, 1)

    def __gt__(self, other: Any) -> bool:
        return not self._is_below(other, 1)

    def __ge__(self, other: Any) -> bool:
        return not self._is_below(other, 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int | float | GuardedInteger):
            return False
        return self <= other and self >= other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(int(self))

    def __bool__(self) -> bool:
        return self != 0

    def _is_below(self, other: Any, more: int) -> bool:
        """Whether it is less than `other` + `more`."""
        if isinstance(other, float):
            return int(self) < other if not more else int(self) <= other
        distance = self - (other + more)
        if not isinstance(distance, GuardedInteger):
            return distance < 0
        is_below = distance.value < 0
        distance._require(*((None, -1) if is_below else (0, None)))  # noqa: SLF001 - its own class
        return is_below

    def _require(self, low: int | None, high: int | None) -> None:
        """A guard holds the value in a range."""
        form = tuple(sorted(self.factors.items()))
        if form[0][1] < 0:
            # A sum and its negative have one guard.
            form = tuple((each, -factor) for each, factor in form)
            low, high = None if high is None else -high, None if low is None else -low
            shift = -self.number
        else:
            shift = self.number
        self.variables.require(
            form,
            None if low is None else low - shift,
            None if high is None else high - shift,
        )

    def _sum(self, factors: Mapping[int, int], number: int) -> Any:
        kept = {each: factor for each, factor in factors.items() if factor}
        return GuardedInteger(self.variables, kept, number) if kept else number


def _read(name: str) -> Any:
    """Another operation of integers, with the value of the recorded program."""
    operation = getattr(operator, name)

    def method(self: GuardedInteger, *others: Any) -> Any:
        return operation(int(self), *others)

    return method


def _read_reflected(name: str) -> Any:
    operation = getattr(operator, name)

    def method(self: GuardedInteger, other: Any) -> Any:
        return operation(other, int(self))

    return method


for _name in ("truediv", "and", "or", "xor", "pow"):
    setattr(GuardedInteger, f"__{_name}__", _read(f"__{_name}__"))
for _name in ("floordiv", "mod", "lshift", "rshift", "truediv", "and", "or", "xor", "pow"):
    setattr(GuardedInteger, f"__r{_name}__", _read_reflected(f"__{_name}__"))
for _name in ("invert", "abs"):
    setattr(GuardedInteger, f"__{_name}__", _read(f"__{_name}__"))
