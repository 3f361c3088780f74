"""Arithmetic of times in C; exact.py has what each function is.

A time is at most `NEVER_PS`, so the difference of two never overflows 64 bits, while a sum can:
2^62 + 2^62. `later_ps` adds to a bound. The time of an event is less than `NEVER_PS`, which the
calendar checks, and the delays of a chip are less than 2^50; so `now_ps + delay_ps` is in range.
The product of two integers of 64 bits never overflows 128.
"""

cimport cython

cdef extern from *:
    """
    #define KERNBENCH_NEVER_PS (1LL << 62)
    typedef __int128 kernbench_int128;
    """
    # `runtime.core.simtime.NEVER_PS`.
    const long long NEVER_PS "KERNBENCH_NEVER_PS"
    # For Cython only a signed integer; the C compiler has its width.
    ctypedef long long int128 "kernbench_int128"


cdef inline long long later_ps(long long time_ps, long long delay_ps) noexcept nogil:
    return NEVER_PS if time_ps >= NEVER_PS - delay_ps else time_ps + delay_ps


# Cython's check of overflow takes `int128` for one of its own types, whose width is another.
@cython.overflowcheck(False)
cdef inline long long ceil_ratio(
    long long number, long long numerator, long long denominator
) noexcept:
    cdef int128 ratio = (<int128> number * numerator + denominator - 1) // <int128> denominator
    return <long long> ratio if ratio <= NEVER_PS else NEVER_PS + 1
