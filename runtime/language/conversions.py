"""Conversions between element types: one rounding, and the rules where a type has no such number.

f8e4m3 and f8e5m2 saturate: a number beyond the greatest of the type, and an infinity, becomes the
greatest with its sign; NaN stays NaN. That is the saturating mode of the *OCP 8-bit Floating Point
Specification* (OFP8, revision 1.0, section 5.2). All other floating-point types have infinities.
"""

import numpy as np

from runtime.core.dtypes import DType, boolean
from runtime.language.functions import Array


def rounded(exact: Array, dtype: DType) -> Array:
    """Numbers in a floating-point type, rounded once; not copied if they are of the type."""
    # An element of the type itself is no conversion: an infinity of f8e5m2 stays an infinity.
    if dtype.saturates and exact.dtype != dtype.numpy:
        # float64 has every element of the other types but some int64, far beyond saturation.
        wide = exact.astype(np.float64)
        # Both functions return NaN where an operand is NaN, so NaN stays NaN.
        exact = np.minimum(np.maximum(wide, -dtype.greatest), dtype.greatest)
    return exact.astype(dtype.numpy, copy=False)


def element(number: Array | float, dtype: DType) -> Array:
    """A Python number as an element of a type, as an array without axes."""
    array = np.asarray(number)
    return rounded(array, dtype) if dtype.is_floating_point else array.astype(dtype.numpy)


def converted(array: Array, dtype: DType) -> Array:
    """A copy in another type, rounded once.

    Floating-point to integer drops the fraction and saturates, NaN becomes 0; integer to integer
    wraps round; bool is whether an element is not 0.
    """
    # numpy wraps integers; for floats to integers its result outside the range is undefined.
    if dtype.is_floating_point:
        return np.array(rounded(array, dtype), order="C")
    if dtype == boolean or array.dtype.kind in "iub":
        return np.array(array.astype(dtype.numpy), order="C")
    limits = np.iinfo(dtype.numpy.name)
    whole = np.nan_to_num(np.trunc(array.astype(np.float64)), posinf=np.inf, neginf=-np.inf)
    # float64 does not hold the greatest int64, only the number after it, to which it rounds.
    above, below = whole >= float(limits.max), whole < float(limits.min)
    inside = np.where(above | below, 0, whole).astype(dtype.numpy)
    saturated = np.where(above, limits.max, np.where(below, limits.min, inside))
    return np.array(saturated.astype(dtype.numpy), order="C")
