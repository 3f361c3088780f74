"""Checks of the flags of benches: each raises `UsageError` that names the flag, value and rule."""

from collections.abc import Collection

from runtime.ccl.config import POINT_TO_POINT, CclConfig
from runtime.core.errors import UsageError, nearest


def check_choice(flag: str, value: str, known: Collection[str]) -> None:
    """`value` must be one of `known`."""
    if value not in known:
        raise UsageError(f"--{flag}: {value!r} is not known{nearest(value, known)}")


def check_least(least: int, **flags: int) -> None:
    """Each flag must be at least `least`."""
    for flag, value in flags.items():
        if value < least:
            raise UsageError(f"--{flag.replace('_', '-')} {value}: must be at least {least}")


def check_range(least: int, most: int, **flags: int) -> None:
    """Each flag must be from `least` to `most`."""
    for flag, value in flags.items():
        if not least <= value <= most:
            name = flag.replace("_", "-")
            raise UsageError(f"--{name} {value}: must be from {least} to {most}")


def checked_count(flag: str, value: int, available: int, of_what: str) -> int:
    """A number of cubes or PEs, at most `available`; 0 stands for all."""
    if not 0 <= value <= available:
        raise UsageError(f"--{flag} {value}: {of_what} has {available}; 0 means all")
    return value or available


def check_algorithm(ccl: CclConfig, name: str) -> None:
    """`name` must be an algorithm of collectives in `ccl`, `auto`, or "" for its default.

    Raises `UsageError`, or `ConfigError` for a name that the file does not have.
    """
    if name == POINT_TO_POINT:
        known = ", ".join(each for each in ccl.file.algorithms if each != POINT_TO_POINT)
        raise UsageError(
            f"--algorithm {name}: it is the algorithm of send and receive and has no collective; "
            f"known: {known}"
        )
    ccl.resolve(name or None)
