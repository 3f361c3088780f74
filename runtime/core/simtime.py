"""Converts and formats simulated time: integer picoseconds inside, nanoseconds in YAML and reports.

Integer addition is associative, so a sum of latencies does not depend on how a run is split over
processes. Factors come from decimal text (`exact`): a binary float would make the rounding of
`0.1 ns` or `204.8 GB/s` depend on the order of operations.
"""

from fractions import Fraction
from functools import lru_cache

PS_PER_NS = 1000
# Sums with a lookahead must stay below 2**63, the range of integers on the wire.
NEVER_PS = 1 << 62
"""Later than any event: the time of an event that never occurs, the promise of a finished LP."""


# A model reads the few numbers of its file for each of its thousands of components.
@lru_cache(maxsize=1024)
def exact(number: float) -> Fraction:
    """The decimal that the user wrote, not the nearest binary number: `exact(0.1)` is 1/10."""
    return Fraction(str(number))


# For the same reason, and for each kernel that starts: a round of a fraction takes 9 us.
@lru_cache(maxsize=1024)
def ps_from_ns(ns: float) -> int:
    """Round `ns` to the nearest picosecond, the resolution of the model."""
    # A fraction is rounded exactly, halves to the even number, on every machine alike.
    return round(exact(ns) * PS_PER_NS)


def ns_from_ps(ps: int) -> float:
    """Nanoseconds for a report; never fed back into the model."""
    return ps / PS_PER_NS


def serialisation_ps(nbytes: int, bw_gbs: float) -> int:
    """Time to move `nbytes` at `bw_gbs` (1 GB/s = 1 byte/ns), rounded up to the picosecond.

    Rounding up keeps every throughput at or below the bandwidth it was computed from.
    """
    # -(-a // b) is the ceiling of a / b, exact with integers and fractions.
    return -(-nbytes * PS_PER_NS // exact(bw_gbs))


def format_ps(ps: int) -> str:
    """`12.345 ns`, or `never`."""
    return "never" if ps >= NEVER_PS else f"{ps / PS_PER_NS:,.3f} ns"
