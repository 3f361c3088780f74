"""Arithmetic of times that is exact: products of any size, and sums that do not pass the end."""

from fractions import Fraction

from runtime.core.simtime import NEVER_PS

BEYOND_PS = NEVER_PS + 1
"""Stands for a duration that is longer than any run."""


def later_ps(time_ps: int, delay_ps: int) -> int:
    """`time_ps + delay_ps`; never stays never."""
    return min(time_ps + delay_ps, NEVER_PS)


def ceil_ratio(number: int, numerator: int, denominator: int) -> int:
    """`number * numerator / denominator`, rounded up, at most `BEYOND_PS`; none is negative."""
    ratio = -(-number * numerator // denominator)
    return ratio if ratio <= NEVER_PS else BEYOND_PS


def long_ceil_ratio(number: int, ratio: Fraction) -> int:
    """`number * ratio`, rounded up, at most `BEYOND_PS`, of integers with any number of digits."""
    return ceil_ratio(number, ratio.numerator, ratio.denominator)


def fits(ratio: Fraction) -> bool:
    """Whether both parts of a ratio are integers of 64 bits."""
    return max(ratio.numerator, ratio.denominator) < 1 << 63
