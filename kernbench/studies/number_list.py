"""Lists of values in the flags of a study, separated by commas; and sizes by a factor."""

from collections.abc import Iterator

from runtime.core.errors import UsageError


def rising_numbers(flag: str, text: str, least: int, most: int) -> tuple[int, ...]:
    """The numbers in `A,B,...`; raises `UsageError` unless they rise, from `least` to `most`."""
    words = [word.strip() for word in text.split(",")]
    # A word with more digits than `most` is no such number, and may be too long to be converted.
    numbers = tuple(
        int(word)
        for word in words
        if word.isdecimal() and len(word) <= len(str(most)) and least <= int(word) <= most
    )
    if len(numbers) < len(words) or list(numbers) != sorted(set(numbers)):
        raise UsageError(
            f"{flag} {text!r}: expected rising numbers from {least} to {most}, separated by commas"
        )
    return numbers


def distinct_values(flag: str, text: str) -> list[str]:
    """The values in `A,B,...`; raises `UsageError` if one stands twice."""
    values = [value.strip() for value in text.split(",")]
    if len(set(values)) < len(values):
        raise UsageError(f"{flag} {text}: each value once")
    return values


def sizes_by_factor(first: int, most: int, factor: int) -> Iterator[int]:
    """`first` and each next size, `factor` times the previous, up to `most`."""
    while first <= most:
        yield first
        first *= factor
