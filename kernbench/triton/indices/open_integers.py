"""Integers that stay open in the list of a kernel: one list serves many programs.

A program id and an address are open integers while a kernel is recorded. Python's operators compute
with them, and what a comparison has read of one holds for all programs of the list.
"""

import operator
from collections.abc import Mapping
from typing import Any

from kernbench.triton.indices.element_types import LIMITS
from kernbench.triton.indices.index_values import IndexValue


def _is_open(number: object) -> bool:
    return type(number) not in (int, float, bool)


def plain_number(number: Any) -> float:
    """A number that a command has: an open one as that of this program."""
    return int(number) if _is_open(number) else number


def _quotient(a: Any, b: Any) -> Any:
    # The stub of `operator.floordiv` has no types.
    return a // b


_OF_INTEGERS: Mapping[str, Any] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "minimum": min,
    "maximum": max,
    "quotient": _quotient,
    "remainder": operator.mod,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def of_open(name: str, kind: str, operands: tuple[IndexValue, ...]) -> Any:
    """The result, of type `kind`, of an operation on integers of which one is open; None for any
    other operation, which takes the integers of this program.
    """
    numbers = [each.number for each in operands if each.affine is not None]
    function = _OF_INTEGERS.get(name)
    if (
        function is None
        or len(numbers) < len(operands)
        or not any(each is not None and _is_open(each) for each in numbers)
        or any(each is None or isinstance(each, float) for each in numbers)
    ):
        return None
    if name in ("quotient", "remainder") and (numbers[0] < 0 or numbers[1] <= 0):
        # Hardware divides towards zero, Python down.
        return None
    result = function(*numbers)
    if kind in ("int1", "pointer"):
        return result
    if kind not in LIMITS:
        return None
    least, greatest = LIMITS[kind]
    return result if least <= result <= greatest else None
