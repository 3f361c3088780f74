"""Functions of integers as chains of the vector engine, which multiplies integers, but neither
divides nor shifts them.
"""

from runtime.language import tl
from runtime.language.value import Value


def floor_quotient(a: Value, b: Value) -> Value:
    """The quotient, rounded down."""
    quotient, rest = _quotient_and_rest(a, b)
    return tl.where((rest != 0) & ((rest < 0) ^ (b < 0)), quotient - 1, quotient)


def truncated_quotient(a: Value, b: Value) -> Value:
    """The quotient, rounded towards 0."""
    quotient, rest = _quotient_and_rest(a, b)
    is_below = (rest != 0) & ((rest < 0) ^ (a < 0))
    return tl.where(is_below, tl.where((rest < 0) ^ (b < 0), quotient - 1, quotient + 1), quotient)


def remainder(a: Value, b: Value) -> Value:
    """The rest of a division, with the sign of the divisor."""
    _, rest = _quotient_and_rest(a, b)
    return tl.where((rest != 0) & ((rest < 0) ^ (b < 0)), rest + b, rest)


def fmod(a: Value, b: Value) -> Value:
    """The rest of a division, with the sign of the dividend."""
    _, rest = _quotient_and_rest(a, b)
    is_other_sign = (rest != 0) & ((rest < 0) ^ (a < 0))
    return tl.where(is_other_sign, tl.where((rest < 0) ^ (b < 0), rest + b, rest - b), rest)


def _quotient_and_rest(a: Value, b: Value) -> tuple[Value, Value]:
    """A quotient, and its rest, which is less than the divisor and has either sign.

    The quotient of float64 has 53 bits, so that of 64 bits has an error of 2^11 at most. The
    products with it wrap round, and the rest is exact; its own quotient is small. The quotient by 0
    is that by 1.
    """
    divisor = tl.where(b == 0, 1, b)
    total = _near_quotient(a, divisor)
    rest = a - total * divisor
    if a.dtype.itemsize == 8:
        more = _near_quotient(rest, divisor)
        total, rest = total + more, rest - more * divisor
    return total, rest


def _near_quotient(a: Value, b: Value) -> Value:
    return tl.floor(a.to(tl.float64) / b.to(tl.float64)).to(a.dtype)


def power(base: Value, exponent: Value) -> Value:
    """The power of corresponding elements; of a negative exponent, the fraction rounded to 0."""
    is_signed = base.dtype.holds(-1)
    # Registers hold narrower values to the end of a chain: those of all bits would not fit.
    wide = base * 0 + exponent * 0
    base, exponent = wide + base, wide + exponent
    result, square = wide + 1, base
    for bit in range(8 * base.dtype.itemsize - is_signed):
        result = tl.where((exponent & (1 << bit)) != 0, result * square, result)
        square = square * square
    if not is_signed:
        return result
    # 1 / base: 1 and -1 are their own inverses.
    is_unit = (base == 1) | (base == -1)
    inverse = tl.where((exponent & 1) != 0, base, base * base)
    return tl.where(exponent < 0, tl.where(is_unit, inverse, 0), result)


def constant_power(base: Value, exponent: int) -> Value:
    """The power with an exponent >= 0."""
    result, square = base * 0 + 1, base
    while exponent:
        if exponent % 2:
            result = result * square
        exponent //= 2
        square = square * square
    return result


def shifted_left(x: Value, places: Value) -> Value:
    """The bits moved to the left; 0 for places beyond those of the type."""
    bits = 8 * x.dtype.itemsize
    return tl.where((places < 0) | (places >= bits), x * 0, x * _power_of_two(places, x))


def shifted_right(x: Value, places: Value) -> Value:
    """The bits moved to the right, with the sign."""
    bits = 8 * x.dtype.itemsize
    is_beyond = (places < 0) | (places >= bits - 1)
    sign = tl.where(x < 0, x * 0 - 1, x * 0)
    within = tl.where(is_beyond, 0, places)
    return tl.where(is_beyond, sign, floor_quotient(x, _power_of_two(within, x)))


def _power_of_two(places: Value, x: Value) -> Value:
    result = x * 0 + 1
    for bit in range((8 * x.dtype.itemsize - 1).bit_length()):
        result = tl.where((places & (1 << bit)) != 0, result * (1 << (1 << bit)), result)
    return result
