"""Integers of 128 bits: the product of two of 64 bits never overflows them."""

cdef extern from *:
    """
    typedef __int128 kernbench_int128;
    """
    # For Cython only a signed integer; the C compiler has its width.
    ctypedef long long int128 "kernbench_int128"
