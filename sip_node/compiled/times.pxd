"""Simulated times in C: the end of time, and sums that do not pass it.

A time is at most `NEVER_PS`, so the difference of two never overflows 64 bits, while a sum can:
2^62 + 2^62. `later_ps` adds to a bound. The time of an event is less than `NEVER_PS`, which the
calendar checks, and the delays of a chip are less than 2^50; so `now_ps + delay_ps` is in range.
"""

cdef extern from *:
    """
    #define KERNBENCH_NEVER_PS (1LL << 62)
    """
    # `runtime.core.simtime.NEVER_PS`.
    const long long NEVER_PS "KERNBENCH_NEVER_PS"


cdef inline long long later_ps(long long time_ps, long long delay_ps) noexcept nogil:
    """`time_ps + delay_ps`; never stays never."""
    return NEVER_PS if time_ps >= NEVER_PS - delay_ps else time_ps + delay_ps
