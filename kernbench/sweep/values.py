"""The values of a parameter as a user writes them: lists, ranges with steps or factors.

    64,128,256      a list
    2..8            the integers from 2 to 8
    2..8..2         with a step: 2, 4, 6, 8
    64..512..x2     with a factor: 64, 128, 256, 512

A list may have ranges among its items. Numbers are decimal and exact: `0.1..0.3..0.1` ends with
0.3.
"""

import re
from collections.abc import Iterator
from decimal import Decimal, localcontext

from runtime.core.errors import UsageError

Value = bool | int | float | str | None

MOST_POINTS = 10_000
"""Points of a sweep, and values of a parameter, at most."""
_NUMBER = r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?:\.\.(x?)({_NUMBER}))?")
_INTEGER = re.compile(r"[+-]?\d{1,30}")
_WORDS: dict[str, Value] = {"true": True, "false": False, "null": None}
_DIGITS = 30
"""Digits of a number in a range at most."""


def listed(option: str, text: str) -> list[str]:
    """The items of a list, its ranges expanded. Raises `UsageError` that begins with `option`."""
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        problem = "an empty value" if any(items) else "no value"
        raise UsageError(f"{option}={text}: {problem}; expected VALUE,VALUE or FIRST..LAST")
    values = list[str]()
    for item in items:
        values += _range(f"{option}={text}", item)
        if len(values) > MOST_POINTS:
            raise UsageError(f"{option}={text}: more than {MOST_POINTS:,} values")
    return values


def scalar(text: str) -> Value:
    """The value that a configuration file would have: a number, `true`, `false`, `null`, a name."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if re.fullmatch(_NUMBER, text) else text


def plain(value: Value) -> str:
    """A value as a user writes it."""
    return next((word for word, each in _WORDS.items() if each is value), str(value))


def _range(given: str, item: str) -> list[str]:
    """The numbers of a range; the item itself if it is none."""
    match = _RANGE.fullmatch(item)
    if match is None:
        return [item]
    first, last = _decimal(given, match[1]), _decimal(given, match[2])
    if match[4] is None and not (_is_whole(first) and _is_whole(last)):
        raise UsageError(f"{given}: {item} needs a step, as in {item}..0.5 or {item}..x2")
    step = _decimal(given, match[4] or "1")
    if first > last:
        raise UsageError(f"{given}: {item} is empty, {match[1]} is more than {match[2]}")
    if match[3] and (step <= 1 or first <= 0):
        raise UsageError(f"{given}: {item} needs a factor above 1 and a first value above 0")
    if step <= 0:
        raise UsageError(f"{given}: {item} needs a step above 0")
    numbers = list[str]()
    for number in _numbers(first, last, step, by_factor=bool(match[3])):
        if len(numbers) == MOST_POINTS:
            raise UsageError(f"{given}: {item} has more than {MOST_POINTS:,} values")
        numbers.append(_text(number))
    return numbers


def _numbers(first: Decimal, last: Decimal, step: Decimal, *, by_factor: bool) -> Iterator[Decimal]:
    number = first
    while number <= last:
        yield number
        with localcontext(prec=2 * _DIGITS):
            number = number * step if by_factor else number + step


def _decimal(given: str, text: str) -> Decimal:
    number = Decimal(text)
    if number and not -_DIGITS < number.adjusted() < _DIGITS:
        raise UsageError(f"{given}: {text} has more than {_DIGITS} digits")
    return number


def _is_whole(number: Decimal) -> bool:
    return number == number.to_integral_value()


def _text(number: Decimal) -> str:
    return str(int(number)) if _is_whole(number) else f"{number.normalize():f}"
