"""The roofline: least time of a program by its operations and by its bytes.

S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", CACM 52(4), 2009. Times are exact fractions of a picosecond.
"""

from fractions import Fraction

from runtime.core.simtime import PS_PER_NS


def cycles_ps(cycles: Fraction | int, clock_ghz: Fraction) -> Fraction:
    """Time of `cycles` cycles of a clock."""
    return cycles * PS_PER_NS / Fraction(clock_ghz)


def bytes_ps(nbytes: Fraction | int, gbs: Fraction) -> Fraction:
    """Time of `nbytes` at a bandwidth; 1 GB/s is one byte per nanosecond."""
    return nbytes * PS_PER_NS / Fraction(gbs)


def compute_bound_ps(macs: int, macs_per_cycle: int, clock_ghz: Fraction) -> Fraction:
    """Least time of `macs` multiply-accumulate operations: all of them at the peak rate."""
    # No rounding to whole cycles: a bound may be too low, never too high.
    return cycles_ps(Fraction(macs, macs_per_cycle), clock_ghz)


def memory_bound_ps(read: int, written: int, shared_gbs: Fraction, link_gbs: Fraction) -> Fraction:
    """Least time of the bytes read and written.

    Both directions share the memory (`shared_gbs`); the link to it has `link_gbs` in each
    direction.
    """
    # Two servers in a row, each of which must serve all bytes that pass it.
    return max(bytes_ps(read + written, shared_gbs), bytes_ps(max(read, written), link_gbs))


def binding(compute_ps: Fraction | int, memory_ps: Fraction | int) -> str:
    """The larger one of the two bounds: `compute` or `memory`."""
    return "compute" if compute_ps > memory_ps else "memory"
