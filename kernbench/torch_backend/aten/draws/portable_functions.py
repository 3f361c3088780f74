"""Transcendental functions whose results do not depend on the processor.

PyTorch, numpy and the C library choose code by the vector unit of the processor, and the last bits
of a logarithm differ between these. Here a function is a polynomial of additions, products,
quotients and roots in float64, which IEEE 754 rounds alike everywhere. Arrays in, arrays out; the
errors are a few units of the last place of float64.
"""

from math import factorial

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""ln 2 as a sum: products of the first part with integers of 20 bits are exact (fdlibm)."""
_QUARTER = (1.57079632673412561417e00, 6.07710050650619224932e-11)
"""pi / 2 as a sum, of the same kind (fdlibm)."""
_SQRT_HALF = 0.7071067811865476
_LOGARITHM = tuple(2.0 / (2 * power + 1) for power in range(12))
"""Coefficients of the series 2 artanh(f) = f (2 + 2/3 f^2 + ...), for |f| < 0.172."""
_SINE = tuple((-1.0) ** power / factorial(2 * power + 1) for power in range(9))
_COSINE = tuple((-1.0) ** power / factorial(2 * power) for power in range(10))
"""Coefficients of Taylor's series, for angles of at most pi / 4."""
_EXPONENTIAL = tuple(1.0 / factorial(power) for power in range(14))
"""Coefficients of Taylor's series, for exponents of at most ln 2 / 2."""


def log(x: Array) -> Array:
    """The natural logarithm of finite numbers >= 0; -inf of 0."""
    mantissa, exponent = np.frexp(x)
    is_low = mantissa < _SQRT_HALF
    mantissa = np.where(is_low, 2.0 * mantissa, mantissa)
    power = exponent - is_low
    part = (mantissa - 1.0) / (mantissa + 1.0)
    of_mantissa = part * _polynomial(_LOGARITHM, part * part)
    logarithm = power * _LN2_HIGH + (power * _LN2_LOW + of_mantissa)
    return np.where(x == 0.0, -np.inf, logarithm)


def log1p(x: Array) -> Array:
    """The natural logarithm of 1 + x, for x >= -1."""
    whole = 1.0 + x
    lost = np.where(whole == 1.0, 1.0, whole - 1.0)
    # The quotient removes the error of the sum in `whole` (HP-15C Advanced Functions Handbook).
    return np.where(whole == 1.0, x, np.where(whole == 0.0, -np.inf, log(whole) * (x / lost)))


def exp(x: Array) -> Array:
    """The exponential function."""
    within = np.clip(x, -800.0, 800.0)
    power = np.rint(within * 1.4426950408889634)
    rest = (within - power * _LN2_HIGH) - power * _LN2_LOW
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(_polynomial(_EXPONENTIAL, rest), power.astype(np.int32))


def cosine_and_sine(angle: Array) -> tuple[Array, Array]:
    """Both functions of angles of at most a few turns."""
    turn = np.rint(angle * 0.6366197723675814)
    rest = (angle - turn * _QUARTER[0]) - turn * _QUARTER[1]
    square = rest * rest
    cosine, sine = _polynomial(_COSINE, square), rest * _polynomial(_SINE, square)
    quadrant = turn.astype(np.int64) % 4
    is_odd, is_beyond = quadrant % 2 == 1, quadrant >= 2
    first, second = np.where(is_odd, -sine, cosine), np.where(is_odd, cosine, sine)
    return np.where(is_beyond, -first, first), np.where(is_beyond, -second, second)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """The sum of coefficient i times x^i, by Horner's rule."""
    total = np.full_like(x, coefficients[-1])
    for each in coefficients[-2::-1]:
        total *= x
        total += each
    return total
