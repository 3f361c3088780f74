"""Elementary functions as chains of the vector engine, which has exponentials, logarithms, sines,
cosines and roots alone.

Each is right to a few units of the last place over its whole range: differences of nearly equal
numbers are avoided or compensated.
"""

from collections.abc import Sequence
from math import inf, log, pi, sqrt

from runtime.language import tl
from runtime.language.value import Value

_LARGE = 1e8
"""Beyond it a square and its sum with 1 are equal, also in float64."""
_ARCTANGENT = (
    (
        *(-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1),
        *(-1.228866684490136173410e2, -6.485021904942025371773e1),
    ),
    (
        *(1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2),
        *(4.853903996359136964868e2, 1.945506571482613964425e2),
    ),
)
"""Coefficients of (atan(x) - x) / x^3 as a quotient of polynomials of x^2, for |x| <= 0.66 (Cephes,
atan.c)."""
_ERFC = (
    (
        *(2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687),
        *(4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2),
        *(9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2),
    ),
    (
        *(1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2),
        *(9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3),
        *(1.65666309194161350182e3, 5.57535340817727675546e2),
    ),
)
"""Coefficients of erfc(x) exp(x^2), for 1 <= x < 8 (Cephes, ndtr.c)."""
_FAR_ERFC = (
    (
        *(5.64189583547755073984e-1, 1.27536670759978104416, 5.01905042251180477414),
        *(6.16021097993053585195, 7.40974269950448939160, 2.97886665372100240670),
    ),
    (
        *(1.0, 2.26052863220117276590, 9.39603524938001434673, 1.20489539808096656605e1),
        *(1.70814450747565897222e1, 9.60896809063285878198, 3.36907645100081516050),
    ),
)
"""The same for x >= 8."""
_INVERSE_ERF = (
    (-0.140543331, 0.914624893, -1.645349621, 0.886226899),
    (0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0),
)
"""Coefficients of erfinv(y) / y as a quotient of polynomials of y^2, for |y| <= 0.7."""
_FAR_INVERSE_ERF = (
    (1.641345311, 3.429567803, -1.624906493, -1.970840454),
    (1.637067800, 3.543889200, 1.0),
)
"""Coefficients of erfinv(y), of sqrt(-log((1 - |y|) / 2)), for greater |y|."""

_CHEBYSHEV = {
    0: (
        (
            *(-4.41534164647933937950e-18, 3.33079451882223809783e-17, -2.43127984654795469359e-16),
            *(1.71539128555513303061e-15, -1.16853328779934516808e-14, 7.67618549860493561688e-14),
            *(-4.85644678311192946090e-13, 2.95505266312963983461e-12, -1.72682629144155570723e-11),
            *(9.67580903537323691224e-11, -5.18979560163526290666e-10, 2.65982372468238665035e-9),
            *(-1.30002500998624804212e-8, 6.04699502254191894932e-8, -2.67079385394061173391e-7),
            *(1.11738753912010371815e-6, -4.41673835845875056359e-6, 1.64484480707288970893e-5),
            *(-5.75419501008210370398e-5, 1.88502885095841655729e-4, -5.76375574538582365885e-4),
            *(1.63947561694133579842e-3, -4.32430999505057594430e-3, 1.05464603945949983183e-2),
            *(-2.37374148058994688156e-2, 4.93052842396707084878e-2, -9.49010970480476444210e-2),
            *(1.71620901522208775349e-1, -3.04682672343198398683e-1, 6.76795274409476084995e-1),
        ),
        (
            *(-7.23318048787475395456e-18, -4.83050448594418207126e-18, 4.46562142029675999901e-17),
            *(3.46122286769746109310e-17, -2.82762398051658348494e-16, -3.42548561967721913462e-16),
            *(1.77256013305652638360e-15, 3.81168066935262242075e-15, -9.55484669882830764870e-15),
            *(-4.15056934728722208663e-14, 1.54008621752140982691e-14, 3.85277838274214270114e-13),
            *(7.18012445138366623367e-13, -1.79417853150680611778e-12, -1.32158118404477131188e-11),
            *(-3.14991652796324136454e-11, 1.18891471078464383424e-11, 4.94060238822496958910e-10),
            *(3.39623202570838634515e-9, 2.26666899049817806459e-8, 2.04891858946906374183e-7),
            *(2.89137052083475648297e-6, 6.88975834691682398426e-5, 3.36911647825569408990e-3),
            *(8.04490411014108831608e-1,),
        ),
    ),
    1: (
        (
            *(2.77791411276104639959e-18, -2.11142121435816608115e-17, 1.55363195773620046921e-16),
            *(-1.10559694773538630805e-15, 7.60068429473540693410e-15, -5.04218550472791168711e-14),
            *(3.22379336594557470981e-13, -1.98397439776494371520e-12, 1.17361862988909016308e-11),
            *(-6.66348972350202774223e-11, 3.62559028155211703701e-10, -1.88724975172282928790e-9),
            *(9.38153738649577178388e-9, -4.44505912879632808065e-8, 2.00329475355213526229e-7),
            *(-8.56872026469545474066e-7, 3.47025130813767847674e-6, -1.32731636560394358279e-5),
            *(4.78156510755005422638e-5, -1.61760815825896745588e-4, 5.12285956168575772895e-4),
            *(-1.51357245063125314899e-3, 4.15642294431288815669e-3, -1.05640848946261981558e-2),
            *(2.47264490306265168283e-2, -5.29459812080949914269e-2, 1.02643658689847095384e-1),
            *(-1.76416518357834055153e-1, 2.52587186443633654823e-1),
        ),
        (
            *(7.51729631084210481353e-18, 4.41434832307170791151e-18, -4.65030536848935832153e-17),
            *(-3.20952592199342395980e-17, 2.96262899764595013876e-16, 3.30820231092092828324e-16),
            *(-1.88035477551078244854e-15, -3.81440307243700780478e-15, 1.04202769841288027642e-14),
            *(4.27244001671195135429e-14, -2.10154184277266431302e-14, -4.08355111109219731823e-13),
            *(-7.19855177624590851209e-13, 2.03562854414708950722e-12, 1.41258074366137813316e-11),
            *(3.25260358301548823856e-11, -1.89749581235054123450e-11, -5.58974346219658380687e-10),
            *(-3.83538038596423702205e-9, -2.63146884688951950684e-8, -2.51223623787020892529e-7),
            *(-3.88256480887769039346e-6, -1.10588938762623716291e-4, -9.76109749136146840777e-3),
            *(7.78576235018280120474e-1,),
        ),
    ),
}
"""Coefficients of Chebyshev series of the modified Bessel functions of both orders: of exp(-x)
I0(x) and exp(-x) I1(x) / x for 0 <= x <= 8, of exp(-x) sqrt(x) I(x) beyond (Cephes, i0.c, i1.c)."""


def log1p(x: Value) -> Value:
    """log(1 + x)."""
    whole = x + 1.0
    # The quotient removes the error of the sum (HP-15C Advanced Functions Handbook).
    corrected = tl.log(whole) * (x / (whole - 1.0))
    return tl.where((whole == 1.0) | (whole == inf), x, corrected)


def expm1(x: Value) -> Value:
    """exp(x) - 1."""
    power = tl.exp(x)
    rest = power - 1.0
    # Kahan's quotient: the errors of the power are in its logarithm as well.
    near = tl.where(tl.abs(x) < 1.0, rest * x / tl.log(power), rest)
    return tl.where(power == 1.0, x, near)


def log10(x: Value) -> Value:
    """The logarithm with base 10."""
    return tl.log(x) / log(10)


def tan(x: Value) -> Value:
    """The tangent."""
    return tl.sin(x) / tl.cos(x)


def atan(x: Value) -> Value:
    """The angle whose tangent is x."""
    size = tl.abs(x)
    is_far, is_near = size > 1 + sqrt(2), size <= 0.66
    turned = tl.where(is_far, -1.0 / size, (size - 1.0) / (size + 1.0))
    part = tl.where(is_near, size, turned)
    turn = tl.where(is_far, pi / 2, tl.where(is_near, size * 0.0, pi / 4))
    square = part * part
    above, below = (_polynomial(each, square) for each in _ARCTANGENT)
    angle = turn + (part + part * (square * above / below))
    return tl.where(is_negative(x), angle * -1.0, angle)


def atan2(y: Value, x: Value) -> Value:
    """The angle of the point (x, y)."""
    across, up = tl.abs(x), tl.abs(y)
    most, least = tl.maximum(across, up), tl.minimum(across, up)
    slope = tl.where(most == 0.0, least, least / most)
    angle = atan(tl.where(least == inf, 1.0, slope))
    steep = tl.where(up > across, pi / 2 - angle, angle)
    turned = tl.where(is_negative(x), pi - steep, steep)
    return tl.where(is_negative(y), turned * -1.0, turned)


def asin(x: Value) -> Value:
    """The angle whose sine is x."""
    return atan(x / tl.sqrt((1.0 - x) * (x + 1.0)))


def acos(x: Value) -> Value:
    """The angle whose cosine is x."""
    return atan(tl.sqrt((1.0 - x) / (x + 1.0))) * 2.0


def sinh(x: Value) -> Value:
    """The hyperbolic sine."""
    near = expm1(x)
    # The square of half the power: the power itself overflows earlier.
    root = tl.exp(tl.abs(x) * 0.5)
    far = root * 0.5 * root - 0.5 / root / root
    signed = tl.where(x < 0.0, far * -1.0, far)
    return tl.where(tl.abs(x) < 1.0, (near + near / (near + 1.0)) * 0.5, signed)


def cosh(x: Value) -> Value:
    """The hyperbolic cosine."""
    root = tl.exp(tl.abs(x) * 0.5)
    return root * 0.5 * root + 0.5 / root / root


def asinh(x: Value) -> Value:
    """The number whose hyperbolic sine is x."""
    size = tl.abs(x)
    square = size * size
    near = log1p(size + square / (tl.sqrt(square + 1.0) + 1.0))
    result = tl.where(size > _LARGE, tl.log(size) + log(2), near)
    return tl.where(is_negative(x), result * -1.0, result)


def acosh(x: Value) -> Value:
    """The number >= 0 whose hyperbolic cosine is x."""
    more = x - 1.0
    near = log1p(more + tl.sqrt(more) * tl.sqrt(x + 1.0))
    return tl.where(x > _LARGE, tl.log(x) + log(2), near)


def atanh(x: Value) -> Value:
    """The number whose hyperbolic tangent is x."""
    size = tl.abs(x)
    result = log1p(size * 2.0 / (1.0 - size)) * 0.5
    return tl.where(is_negative(x), result * -1.0, result)


def erfc(x: Value) -> Value:
    """1 - erf(x)."""
    size = tl.minimum(tl.abs(x), 30.0)
    # A multiple of 1/64, whose square is exact, and the rest of the square.
    coarse = tl.round(size * 64.0) * (1 / 64)
    bell = tl.exp(coarse * coarse * -1.0) * tl.exp((coarse - size) * (coarse + size))
    near, far = (
        _polynomial(above, within) / _polynomial(below, within)
        for (above, below), within in ((_ERFC, tl.minimum(size, 8.0)), (_FAR_ERFC, size))
    )
    tail = bell * tl.where(size < 8.0, near, far)
    return tl.where(tl.abs(x) < 1.0, 1.0 - tl.erf(x), tl.where(x < 0.0, 2.0 - tail, tail))


def erfinv(y: Value) -> Value:
    """The number whose error function is y."""
    size = tl.abs(y)
    square = y * y
    near = size * _polynomial(_INVERSE_ERF[0], square) / _polynomial(_INVERSE_ERF[1], square)
    depth = tl.sqrt(tl.log((1.0 - size) * 0.5) * -1.0)
    above, below = (_polynomial(each, depth) for each in _FAR_INVERSE_ERF)
    x = tl.where(size <= 0.7, near, above / below)
    for _ in range(2):
        # Newton's method.
        x = x - (tl.erf(x) - size) / (tl.exp(x * x * -1.0) * (2 / sqrt(pi)))
    result = tl.where(size == 1.0, size * inf, x)
    return tl.where(is_negative(y), result * -1.0, result)


def hypot(a: Value, b: Value) -> Value:
    """sqrt(a^2 + b^2), without an overflow between."""
    first, second = tl.abs(a), tl.abs(b)
    most, least = tl.maximum(first, second), tl.minimum(first, second)
    part = least / most
    length = tl.where(most == 0.0, most, most * tl.sqrt(part * part + 1.0))
    return tl.where((first == inf) | (second == inf), inf, length)


def logaddexp(a: Value, b: Value) -> Value:
    """log(exp(a) + exp(b))."""
    return _log_of_sum(a, b, log1p(tl.exp(tl.abs(a - b) * -1.0)))


def logaddexp2(a: Value, b: Value) -> Value:
    """log2(2^a + 2^b)."""
    return _log_of_sum(a, b, log1p(tl.exp2(tl.abs(a - b) * -1.0)) / log(2))


def _log_of_sum(a: Value, b: Value, more: Value) -> Value:
    # The difference of equal infinities is NaN.
    return tl.where((a == b) & (tl.abs(a) == inf), a, tl.maximum(a, b) + more)


def trunc(x: Value) -> Value:
    """The integer towards 0."""
    return tl.where(x < 0, tl.ceil(x), tl.floor(x))


def is_negative(x: Value) -> Value:
    """Whether a number has a sign, also -0."""
    return (x < 0.0) | (1.0 / x < 0.0)


def copysign(size: Value, sign: Value) -> Value:
    """The first number with the sign of the second one."""
    positive = tl.abs(size)
    return tl.where(is_negative(sign), positive * -1.0, positive)


def floor_quotient(a: Value, b: Value) -> Value:
    """The quotient, rounded down; NaN of an infinite dividend, as that has no rest."""
    quotient = tl.floor(a / b)
    quotient = tl.where((tl.abs(b) == inf) & (a * b < 0.0), -1.0, quotient)
    return tl.where((tl.abs(a) == inf) & (b != 0.0), a - a, quotient)


def fmod(a: Value, b: Value) -> Value:
    """The rest of a division, with the sign of the dividend; exact in float64 for numbers of
    float32 whose quotient is below 2^116.
    """
    rest, divisor = tl.abs(a), tl.abs(b)
    # The product of a quotient of 29 bits and a divisor of 24 is exact in float64: a greater
    # quotient is taken in parts.
    for power in (87, 58, 29, 0):
        part = divisor * 2.0**power
        less = rest - tl.floor(rest / part) * part
        # The quotient may be rounded up to the next integer.
        less = tl.where(less < 0.0, less + part, less)
        rest = tl.where(part == inf, rest, less)
    signed = tl.where(is_negative(a), rest * -1.0, rest)
    return tl.where(tl.abs(a) == inf, a - a, signed)


def remainder(a: Value, b: Value) -> Value:
    """The rest of a division, with the sign of the divisor."""
    rest = fmod(a, b)
    is_other_sign = (rest != 0.0) & ((rest < 0.0) ^ (b < 0.0))
    return tl.where(is_other_sign, rest + b, rest)


def bessel(order: int, x: Value, *, is_scaled: bool) -> Value:
    """The modified Bessel function of the first kind of an order, 0 or 1; times exp(-|x|), if it
    `is_scaled`.
    """
    size = tl.abs(x)
    of_near, of_far = _CHEBYSHEV[order]
    near = _chebyshev(of_near, tl.minimum(size, 8.0) * 0.5 - 2.0)
    if order:
        near = near * size
    beyond = tl.maximum(size, 8.0)
    far = _chebyshev(of_far, 32.0 / beyond - 2.0) / tl.sqrt(beyond)
    result = tl.where(size <= 8.0, near, far)
    if not is_scaled:
        result = result * tl.exp(size)
    return tl.where(x < 0.0, result * -1.0, result) if order else result


def _chebyshev(coefficients: Sequence[float], x: Value) -> Value:
    """A Chebyshev series by Clenshaw's recurrence (Cephes, chbevl.c), from the last term on."""
    first, *others = coefficients
    last: Value | None = None
    before, total = x * 0.0, x * 0.0 + first
    for each in others:
        last, before, total = before, total, x * total - before + each
    assert last is not None, "a series has several terms"
    return (total - last) * 0.5


def _polynomial(coefficients: Sequence[float], x: Value) -> Value:
    """A polynomial by Horner's rule, from the coefficient of the highest power on."""
    first, second, *others = coefficients
    total = x * first + second
    for each in others:
        total = total * x + each
    return total
