"""Operations of `tl` on random elements, each with its exact result.

The results are computed with Python's integers and `math`, independently of the kernel language.
"""

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kernbench import tl
from runtime.core.dtypes import (
    DType,
    bfloat16,
    float8e4nv,
    float8e5,
    float16,
    float32,
    int8,
    int32,
)
from runtime.core.rng import Random
from runtime.language.value import Array, Pointer, Value

ROWS, COLUMNS = 8, 32
M, K, N = 36, 150, 40
"""Sides of the matrix products: with the tiles that ship, 2 x 2 output tiles and 3 steps along K.

The last tile along each axis is partial."""
PRECISION = {
    "f16": (10, -14),
    "bf16": (7, -126),
    "f32": (23, -126),
    "f8e4m3": (3, -6),
    "f8e5m2": (2, -14),
}
"""Bits of the fraction, and the least exponent of a normal number.

IEEE 754 binary16 and binary32, bfloat16, and the formats of the OCP 8-bit Floating Point
Specification."""
SATURATED = {"f8e4m3": 448.0, "f8e5m2": 57344.0}
"""The greatest number of a type without infinite results; the same specification."""
FLOATING, INTEGRAL = (float16, bfloat16, float32, float8e4nv, float8e5), (int8, int32)

Exact = Callable[..., float]


@dataclass(frozen=True)
class NumericCase:
    """One operation on given elements.

    `kernel(out, *operands)` takes pointers. `exact` has the elements that it must write to `out`;
    `slack` is the error allowed per element beside one rounding to the type `result`.
    """

    family: str
    name: str
    dtype: DType
    operands: tuple[Array, ...]
    result: DType
    kernel: Callable[..., None]
    exact: Sequence[float]
    slack: Sequence[float] = ()


def cases(rng: Random, tile_depth: int) -> list[NumericCase]:
    """All operations in all types which they support.

    The GEMM engine adds the products of `tile_depth` elements along K before it rounds.
    """
    steps, all_cases = math.ceil(K / tile_depth), list[NumericCase]()
    for dtype in (*FLOATING, *INTEGRAL):
        all_cases += [
            *_elementwise(dtype, rng),
            *_along_an_axis(dtype, rng),
            *_scans(dtype, rng),
            *_positions(dtype, rng),
            *_products(dtype, rng, steps),
        ]
    return all_cases


def ulp(dtype: DType, number: float) -> float:
    """Unit in the last place: the distance between the two numbers of `dtype` around `number`."""
    bits, least = PRECISION[dtype.name]
    exponent = math.frexp(number)[1] - 1 if number else least
    return 2.0 ** (max(exponent, least) - bits)


def wrapped(number: int, dtype: DType) -> int:
    """An integer modulo 2^bits of `dtype`, in two's complement."""
    half = 1 << 8 * dtype.itemsize - 1
    return (number + half) % (2 * half) - half


def _gelu(x: float) -> float:
    # (1 + tanh u) / 2 = sigmoid(2 u): the right side has no cancellation near u = -inf.
    return x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


ANYWHERE: dict[str, tuple[Callable[[Value, Value], Value], Callable[[Any, Any], Any]]] = {
    "add": (operator.add, operator.add),
    "sub": (operator.sub, operator.sub),
    "mul": (operator.mul, operator.mul),
    "maximum": (tl.maximum, max),
    "minimum": (tl.minimum, min),
    "fma": (lambda x, y: tl.fma(x, y, x), lambda x, y: x * y + x),
    "clamp": (lambda x, _: tl.clamp(x, -2, 3), lambda x, _: min(max(x, -2), 3)),
    "abs": (lambda x, _: tl.abs(x), lambda x, _: abs(x)),
    "relu": (lambda x, _: tl.relu(x), lambda x, _: max(x, 0)),
    "where": (
        lambda x, y: tl.where((x < y) & ~(x == 1), y, -2),
        lambda x, y: y if x < y and x != 1 else -2,
    ),
}
"""Operations on x and y of any type."""
OF_FRACTIONS: dict[str, tuple[Callable[[Value, Value], Value], Callable[[Any, Any], Any]]] = {
    "div": (tl.div, lambda x, y: x / y),
    "exp": (lambda x, _: tl.exp(x), lambda x, _: math.exp(x)),
    "exp2": (lambda x, _: tl.exp2(x), lambda x, _: 2.0**x),
    "log": (lambda _, y: tl.log(y), lambda _, y: math.log(y)),
    "log2": (lambda _, y: tl.log2(y), lambda _, y: math.log2(y)),
    "pow": (lambda x, y: y**x, lambda x, y: y**x),
    "sqrt": (lambda _, y: tl.sqrt(y), lambda _, y: math.sqrt(y)),
    "rsqrt": (lambda _, y: tl.rsqrt(y), lambda _, y: 1 / math.sqrt(y)),
    "floor": (lambda x, _: tl.floor(x), lambda x, _: math.floor(x)),
    "ceil": (lambda x, _: tl.ceil(x), lambda x, _: math.ceil(x)),
    "round": (lambda x, _: tl.round(x), lambda x, _: round(x)),
    "erf": (lambda x, _: tl.erf(x), lambda x, _: math.erf(x)),
    "sin": (lambda x, _: tl.sin(x), lambda x, _: math.sin(x)),
    "cos": (lambda x, _: tl.cos(x), lambda x, _: math.cos(x)),
    "tanh": (lambda x, _: tl.tanh(x), lambda x, _: math.tanh(x)),
    "sigmoid": (lambda x, _: tl.sigmoid(x), lambda x, _: _sigmoid(x)),
    "gelu": (lambda x, _: tl.gelu(x), lambda x, _: _gelu(x)),
    "silu": (lambda x, _: tl.silu(x), lambda x, _: x * _sigmoid(x)),
}
"""Operations on x, and on y > 0, of floating-point types."""


def _elementwise(dtype: DType, rng: Random) -> Iterator[NumericCase]:
    for name, (run, exact) in (
        ANYWHERE | OF_FRACTIONS if dtype.is_floating_point else ANYWHERE
    ).items():
        x, y = _drawn(dtype, rng, -4, ROWS, COLUMNS), _drawn(dtype, rng, 0.25, ROWS, COLUMNS)
        results = [exact(*pair) for pair in zip(_numbers(x), _numbers(y), strict=True)]
        yield NumericCase(
            "elementwise",
            name,
            dtype,
            (x, y),
            dtype,
            _on_values(run, x.shape),
            _representable(results, dtype),
        )


def _along_an_axis(dtype: DType, rng: Random) -> Iterator[NumericCase]:
    """Reductions along both axes, and softmax along the last one."""
    widened = int32 if dtype == int8 else dtype
    total = math.fsum if dtype.is_floating_point else sum
    for name, run, exact, result in (
        ("sum", tl.sum, total, widened),
        ("max", tl.max, max, dtype),
        ("min", tl.min, min, dtype),
    ):
        for axis in (0, 1):
            x = _drawn(dtype, rng, -4, ROWS, COLUMNS)
            results = [exact(_numbers(line)) for line in (x.T if axis == 0 else x)]
            kernel = _on_values(partial(run, axis=axis), x.shape)
            yield NumericCase(
                "reduction",
                f"{name} axis {axis}",
                dtype,
                (x,),
                result,
                kernel,
                _representable(results, result),
            )
    if dtype.is_floating_point:
        x = _drawn(dtype, rng, -4, ROWS, COLUMNS)
        results = [share for row in x for share in _softmax(_numbers(row))]
        yield NumericCase(
            "softmax", "softmax", dtype, (x,), dtype, _on_values(tl.softmax, x.shape), results
        )


def _scans(dtype: DType, rng: Random) -> Iterator[NumericCase]:
    """Running sums along both axes."""
    widened = int32 if dtype == int8 else dtype
    total = math.fsum if dtype.is_floating_point else sum
    for axis in (0, 1):
        x = _drawn(dtype, rng, -4, ROWS, COLUMNS)
        lines = [_numbers(line) for line in (x.T if axis == 0 else x)]
        sums = [[total(line[: last + 1]) for last in range(len(line))] for line in lines]
        rows = zip(*sums, strict=True) if axis == 0 else sums
        exact = _representable([each for row in rows for each in row], widened)
        kernel = _on_values(partial(tl.cumsum, axis=axis), x.shape)
        yield NumericCase("scan", f"cumsum axis {axis}", dtype, (x,), widened, kernel, exact)


def _positions(dtype: DType, rng: Random) -> Iterator[NumericCase]:
    """Positions of the greatest and of the least element along both axes."""
    for axis in (0, 1):
        x = _drawn(dtype, rng, -4, ROWS, COLUMNS)
        lines = [_numbers(line) for line in (x.T if axis == 0 else x)]
        for name, run, best in (("argmax", tl.argmax, max), ("argmin", tl.argmin, min)):
            exact = [line.index(best(line)) for line in lines]
            kernel = _on_values(partial(run, axis=axis), x.shape)
            yield NumericCase("position", f"{name} axis {axis}", dtype, (x,), int32, kernel, exact)


def _products(dtype: DType, rng: Random, steps: int) -> Iterator[NumericCase]:
    """`dot` of operands in the TCM, and `composite` of operands streamed from memory."""
    if dtype == int32:
        return
    wide, total = (float32, math.fsum) if dtype.is_floating_point else (int32, sum)
    a, b = _drawn(dtype, rng, -4, M, K), _drawn(dtype, rng, -4, K, N)
    terms = [
        list(map(operator.mul, row, column))
        for row in map(_numbers, a)
        for column in map(_numbers, b.T)
    ]
    exact = [total(each) for each in terms]
    # The accumulator is rounded once per step: N. Higham, Accuracy and Stability of Numerical
    # Algorithms, 2002, section 3.1.
    slack = (
        [steps * 2.0**-24 * math.fsum(map(abs, each)) for each in terms]
        if dtype.is_floating_point
        else []
    )
    for name, result, kernel in (
        ("dot", wide, _dot),
        ("composite", wide if dtype == int8 else dtype, _composite),
    ):
        yield NumericCase(
            "gemm", name, dtype, (a, b), result, kernel, _representable(exact, result), slack
        )


def _dot(out: Pointer, a: Pointer, b: Pointer) -> None:
    tl.store(out, tl.dot(tl.load(a, (M, K)), tl.load(b, (K, N))))


def _composite(out: Pointer, a: Pointer, b: Pointer) -> None:
    tl.wait(tl.composite("gemm", tl.ref(a, (M, K)), tl.ref(b, (K, N)), tl.ref(out, (M, N))))


def _on_values(run: Callable[..., Value], shape: tuple[int, ...]) -> Callable[..., None]:
    def kernel(out: Pointer, *operands: Pointer) -> None:
        tl.store(out, run(*(tl.load(operand, shape) for operand in operands)))

    return kernel


def _softmax(row: Sequence[float]) -> list[float]:
    exponentials = [math.exp(x - max(row)) for x in row]
    return [exponential / math.fsum(exponentials) for exponential in exponentials]


def _drawn(dtype: DType, rng: Random, low: float, *shape: int) -> Array:
    """Random floating-point numbers from `low` to 4; integers over their whole range."""
    count = math.prod(shape)
    if dtype.is_floating_point:
        drawn: list[float] = [rng.uniform(low, 4) for _ in range(count)]
    else:
        drawn = [wrapped(rng.getrandbits(8 * dtype.itemsize), dtype) for _ in range(count)]
    return np.array(drawn).astype(dtype.numpy).reshape(shape)


def _numbers(array: Array) -> list[Any]:
    """The elements as Python numbers, without rounding."""
    number = int if array.dtype.kind == "i" else float
    return [number(each) for each in array.reshape(-1)]


def _representable(results: Iterable[float], dtype: DType) -> list[float]:
    """Integer results modulo 2^bits of `dtype`; floating-point results at most its greatest."""
    if dtype.is_floating_point:
        most = SATURATED.get(dtype.name, math.inf)
        return [min(max(result, -most), most) for result in results]
    return [wrapped(int(result), dtype) for result in results]
