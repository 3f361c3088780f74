"""Arithmetic of times in C, with 128 bits; exact.py has what each function is."""

from sip_node.compiled.int128 cimport int128

cdef extern from *:
    """
    #define KERNBENCH_EXACT_NEVER_PS (1LL << 62)
    """
    const long long NEVER_PS "KERNBENCH_EXACT_NEVER_PS"


cdef inline long long ceil_ratio(
    long long number, long long numerator, long long denominator
) noexcept:
    cdef int128 ratio = (<int128> number * numerator + denominator - 1) // <int128> denominator
    return <long long> ratio if ratio <= NEVER_PS else NEVER_PS + 1
