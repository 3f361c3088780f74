"""Lists of values in the flags of a study, separated by commas."""

from runtime.core.errors import UsageError


def rising_numbers(flag: str, text: str) -> tuple[int, ...]:
    """The numbers in `A,B,...`; raises `UsageError` unless they rise and are above 0."""
    parts = [part.strip() for part in text.split(",")]
    numbers = tuple(int(part) for part in parts if part.isdecimal())
    if len(numbers) < len(parts) or 0 in numbers or list(numbers) != sorted(set(numbers)):
        raise UsageError(f"{flag} {text!r}: expected rising numbers, such as 1024,2048")
    return numbers


def distinct_values(flag: str, text: str) -> list[str]:
    """The values in `A,B,...`; raises `UsageError` if one stands twice."""
    values = [value.strip() for value in text.split(",")]
    if len(set(values)) < len(values):
        raise UsageError(f"{flag} {text}: each value once")
    return values
