"""The times at which arithmetic of 64 bits goes wrong first, for the comparison of two cores."""

from runtime.core.simtime import NEVER_PS

EXTREME_PS = (0, 1, NEVER_PS - 1, NEVER_PS)
"""`NEVER_PS` is 2^62: the sum of two of them does not fit into 64 bits."""
ORIGINS_PS = (0, 0, 0, 1, NEVER_PS - (1 << 40), NEVER_PS - 20_000)
"""Begins of random machines; the last two of them reach the end of time sooner or later."""
