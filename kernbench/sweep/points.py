"""The points of a sweep: all combinations of the values of its parameters, or a zip of them."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from msgspec import Struct

from kernbench.sweep.parameters import COUNT_KEY, Parameter
from kernbench.sweep.values import MOST_POINTS, Value, plain
from runtime.core.errors import UsageError


class SweepPoint(Struct, frozen=True):
    """One simulation: a value for each swept parameter. `cost` grows with its work."""

    names: tuple[str, ...]
    values: tuple[Value, ...]
    cost: int = 1

    def __str__(self) -> str:
        return " ".join(
            f"{name}={plain(value)}" for name, value in zip(self.names, self.values, strict=True)
        )


def sweep_points(parameters: Sequence[Parameter], *, is_zip: bool) -> list[SweepPoint]:
    """The points of swept parameters in the order of a table: the last parameter varies fastest.

    Raises `UsageError` for too many points, and with `is_zip` for lists of different lengths.
    """
    if not parameters:
        raise UsageError("nothing is swept: give a key or an argument two values or more")
    names = tuple(each.name for each in parameters)
    lengths = [len(each.values) for each in parameters]
    if is_zip and len(set(lengths)) > 1:
        listed = ", ".join(f"{each.name} has {len(each.values)}" for each in parameters)
        raise UsageError(f"--zip needs as many values for each: {listed}")
    count = lengths[0] if is_zip else prod(lengths)
    if count > MOST_POINTS:
        raise UsageError(f"{count:,} points; a sweep has at most {MOST_POINTS:,}")
    return [
        SweepPoint(names, values, _cost(parameters, values))
        for values in _combinations(parameters, is_zip=is_zip)
    ]


def _combinations(parameters: Sequence[Parameter], *, is_zip: bool) -> Iterator[tuple[Value, ...]]:
    lists = [each.values for each in parameters]
    return zip(*lists, strict=True) if is_zip else product(*lists)


def _cost(parameters: Sequence[Parameter], values: Sequence[Value]) -> int:
    """The number of SIPs, which is all that is known about the work of a point."""
    counts = [
        value
        for each, value in zip(parameters, values, strict=True)
        if each.target == COUNT_KEY and isinstance(value, int)
    ]
    return counts[0] if counts else 1
