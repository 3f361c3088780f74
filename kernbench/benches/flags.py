"""What flags of benches may be. Each check raises `UsageError`, a line that names the flag, its value and the rule."""

from collections.abc import Collection

from runtime.core.errors import UsageError, nearest


def check_choice(flag: str, value: str, known: Collection[str]) -> None:
    """A word out of those known."""
    if value not in known:
        raise UsageError(f"--{flag}: {value!r} is not known{nearest(value, known)}")


def check_least(least: int, **flags: int) -> None:
    """Numbers of at least `least`."""
    for flag, value in flags.items():
        if value < least:
            raise UsageError(f"--{flag.replace('_', '-')} {value}: must be at least {least}")


def checked_count(flag: str, value: int, available: int, of_what: str) -> int:
    """A number of cubes or PEs, where 0 stands for all that there are."""
    if not 0 <= value <= available:
        raise UsageError(f"--{flag} {value}: {of_what} has {available}; 0 means all")
    return value or available
