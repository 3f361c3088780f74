"""Simulated times for the interpreter: see times.pxd."""

from runtime.core.simtime import NEVER_PS


def later_ps(time_ps: int, delay_ps: int) -> int:
    """`time_ps + delay_ps`; never stays never."""
    return min(time_ps + delay_ps, NEVER_PS)
