"""The functions of `tl` that run on the vector engine, on values in TCM. Each takes simulated time,
and scratch for its result.

Operands broadcast as in numpy and have one type, which is the type of the result; a Python number
takes that type too. A result is computed exactly and rounded to float32, then to its type; integers
wrap round. A type, shape or axis for which an operation is not defined is a `KernelError`.
"""

from collections.abc import Sequence

from runtime.core.dtypes import DType, int32
from runtime.language.context import running_kernel
from runtime.language.running import MathOptions
from runtime.language.shapes import checked_shape, checked_value
from runtime.language.value import Shape, Value

Operand = Value | float


def add(a: Operand, b: Operand) -> Value:
    """Elementwise `a + b`."""
    return running_kernel().math("add", (a, b))


def sub(a: Operand, b: Operand) -> Value:
    """Elementwise `a - b`."""
    return running_kernel().math("sub", (a, b))


def mul(a: Operand, b: Operand) -> Value:
    """Elementwise `a * b`."""
    return running_kernel().math("mul", (a, b))


def div(a: Operand, b: Operand) -> Value:
    """Elementwise `a / b`, floating-point types only; a quotient by 0 is infinite or NaN."""
    return running_kernel().math("div", (a, b))


def maximum(a: Operand, b: Operand) -> Value:
    """Elementwise maximum; NaN where either is NaN."""
    return running_kernel().math("maximum", (a, b))


def minimum(a: Operand, b: Operand) -> Value:
    """Elementwise minimum; NaN where either is NaN."""
    return running_kernel().math("minimum", (a, b))


def pow(a: Operand, b: Operand) -> Value:  # noqa: A001 - Triton's name
    """Elementwise power, also `a ** b`, floating-point types only; NaN for a fractional power of a
    negative number.
    """
    return running_kernel().math("pow", (a, b))


def where(mask: Value, a: Operand, b: Operand) -> Value:
    """Elementwise `a` where `mask` is true, else `b`; `mask` is a value of bools, as `x > 0` is.

    Both choices are evaluated before: `where` only selects.
    """
    return running_kernel().math("where", (mask, a, b))


def bitwise_and(a: Operand, b: Operand) -> Value:
    """Bitwise and of corresponding elements, also `a & b`, integers and bool only."""
    return running_kernel().math("bitwise_and", (a, b))


def bitwise_or(a: Operand, b: Operand) -> Value:
    """Bitwise or of corresponding elements, also `a | b`, integers and bool only."""
    return running_kernel().math("bitwise_or", (a, b))


def bitwise_xor(a: Operand, b: Operand) -> Value:
    """Bitwise exclusive or of corresponding elements, also `a ^ b`, integers and bool only. `~a` is
    that with all bits.
    """
    return running_kernel().math("bitwise_xor", (a, b))


def fma(a: Operand, b: Operand, c: Operand) -> Value:
    """Elementwise `a * b + c`; the product is not rounded."""
    return running_kernel().math("fma", (a, b, c))


def clamp(x: Operand, low: Operand, high: Operand) -> Value:
    """Elementwise `minimum(maximum(x, low), high)`."""
    return running_kernel().math("clamp", (x, low, high))


def exp(x: Value) -> Value:
    """Elementwise exponential, floating-point types only."""
    return running_kernel().math("exp", (x,))


def exp2(x: Value) -> Value:
    """Elementwise power of 2, floating-point types only."""
    return running_kernel().math("exp2", (x,))


def log(x: Value) -> Value:
    """Elementwise natural logarithm, floating-point types only; -inf at 0, NaN below."""
    return running_kernel().math("log", (x,))


def log2(x: Value) -> Value:
    """Elementwise logarithm to base 2, floating-point types only; -inf at 0, NaN below."""
    return running_kernel().math("log2", (x,))


def sqrt(x: Value) -> Value:
    """Elementwise square root, floating-point types only; NaN below 0."""
    return running_kernel().math("sqrt", (x,))


def rsqrt(x: Value) -> Value:
    """Elementwise `1 / sqrt(x)`, floating-point types only; infinite at 0, NaN below."""
    return running_kernel().math("rsqrt", (x,))


def floor(x: Value) -> Value:
    """Elementwise greatest integer that is not above, floating-point types only."""
    return running_kernel().math("floor", (x,))


def ceil(x: Value) -> Value:
    """Elementwise least integer that is not below, floating-point types only."""
    return running_kernel().math("ceil", (x,))


def round(x: Value) -> Value:  # noqa: A001 - PyTorch's name
    """Elementwise nearest integer, that of two which is even; floating-point types only."""
    return running_kernel().math("round", (x,))


def abs(x: Value) -> Value:  # noqa: A001 - Triton's name
    """Elementwise absolute value; for the least integer of a type it wraps round to the operand."""
    return running_kernel().math("abs", (x,))


def sigmoid(x: Value) -> Value:
    """Elementwise `1 / (1 + exp(-x))`, floating-point types only."""
    return running_kernel().math("sigmoid", (x,))


def sin(x: Value) -> Value:
    """Elementwise sine of radians, floating-point types only."""
    return running_kernel().math("sin", (x,))


def cos(x: Value) -> Value:
    """Elementwise cosine of radians, floating-point types only."""
    return running_kernel().math("cos", (x,))


def tanh(x: Value) -> Value:
    """Elementwise hyperbolic tangent, floating-point types only."""
    return running_kernel().math("tanh", (x,))


def erf(x: Value) -> Value:
    """Elementwise error function, floating-point types only."""
    return running_kernel().math("erf", (x,))


def relu(x: Value) -> Value:
    """Elementwise `maximum(x, 0)`."""
    return running_kernel().math("relu", (x,))


def gelu(x: Value) -> Value:
    """Elementwise `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`, the tanh form of GELU,
    floating-point types only.
    """
    return running_kernel().math("gelu", (x,))


def silu(x: Value) -> Value:
    """Elementwise `x * sigmoid(x)`, floating-point types only."""
    return running_kernel().math("silu", (x,))


def sum(x: Value, axis: int | None = None, *, keep_dims: bool = False) -> Value:  # noqa: A001 - Triton's name
    """The sum along `axis`, by default of all elements (shape `()`); `keep_dims` keeps an axis of
    length 1.

    Floating-point elements are summed in float64 and rounded once. Sums of i8, u8 and bool are
    i32; i32 and i64 sums wrap round.
    """
    return running_kernel().math("sum", (x,), MathOptions(axis=axis, keep_dims=keep_dims))


def max(x: Value, axis: int | None = None, *, keep_dims: bool = False) -> Value:  # noqa: A001 - Triton's name
    """The greatest element along `axis`, by default of all; NaN where there is one. `axis` must not
    be empty.
    """
    return running_kernel().math("max", (x,), MathOptions(axis=axis, keep_dims=keep_dims))


def min(x: Value, axis: int | None = None, *, keep_dims: bool = False) -> Value:  # noqa: A001 - Triton's name
    """The least element along `axis`, by default of all; NaN where there is one. `axis` must not be
    empty.
    """
    return running_kernel().math("min", (x,), MathOptions(axis=axis, keep_dims=keep_dims))


def argmax(x: Value, axis: int | None = None, *, keep_dims: bool = False) -> Value:
    """The index of the greatest element along `axis`, of type i32: the first of equal ones, and the
    first NaN if there is one. By default that in the row-major order of all elements.
    """
    return running_kernel().math("argmax", (x,), MathOptions(axis=axis, keep_dims=keep_dims))


def argmin(x: Value, axis: int | None = None, *, keep_dims: bool = False) -> Value:
    """The index of the least element along `axis`, as `argmax`."""
    return running_kernel().math("argmin", (x,), MathOptions(axis=axis, keep_dims=keep_dims))


def cumsum(x: Value, axis: int = 0) -> Value:
    """The sums of each element and all before it along `axis`, each rounded once; types as those of
    `sum`.

    The lanes scan every vector in as many levels as the tree of a reduction has.
    """
    return running_kernel().math("cumsum", (x,), MathOptions(axis=axis))


def softmax(x: Value, axis: int = -1) -> Value:
    """`exp(x - max) / sum(exp(x - max))` along `axis`, rounded once at its end; floating-point
    types only.

    The engine makes three passes over the elements, each with a fetch: the maximum, the sum of the
    exponentials, the quotients.
    """
    return running_kernel().math("softmax", (x,), MathOptions(axis=axis))


def trans(x: Value) -> Value:
    """The transposed matrix, a copy inside TCM; also `x.T`."""
    return running_kernel().math("trans", (x,))


def reshape(x: Value, shape: Shape | int) -> Value:
    """The elements with another shape, also `x.reshape(shape)`: a view where strides can describe
    it, else a copy.
    """
    lengths = shape if isinstance(shape, tuple) else (shape,)
    return checked_value(x, "tl.reshape").reshape(*lengths)


def expand_dims(x: Value, axis: int) -> Value:
    """A view with a new axis of length 1, as number `axis` of the result; `x[:, None]` is one."""
    return checked_value(x, "tl.expand_dims").expand_dims(axis)


def cat(values: Sequence[Value]) -> Value:
    """The concatenated elements of values of one type, as one flat value: a copy inside TCM."""
    return running_kernel().math("cat", tuple(checked_value(value, "tl.cat") for value in values))


def full(shape: Shape | int, value: float, dtype: DType) -> Value:
    """A value of `shape` with `value` everywhere."""
    return running_kernel().math(
        "full", (value,), MathOptions(dtype=dtype, shape=checked_shape(shape))
    )


def arange(start: int, stop: int, dtype: DType = int32) -> Value:
    """The integers from `start` to `stop - 1`, each of which `dtype` must have exactly."""
    return running_kernel().math("arange", (start, stop), MathOptions(dtype=dtype))


def zeros(shape: Shape | int, dtype: DType) -> Value:
    """A value of `shape` with 0 everywhere."""
    return full(shape, 0, dtype)
