"""The functions of the vector engine by name: their arithmetic, operands, types and costs.

Fused chains, epilogues of matrix products and single operations all take their functions from these
tables. The cost of a function is a key of `pe.math.cycles` in the topology file.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def _fma(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


def _clamp(x: Array, low: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


def _relu(x: Array) -> Array:
    return np.maximum(x, np.zeros_like(x))


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _silu(x: Array) -> Array:
    return x * _sigmoid(x)


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * (x * x * x))))


_error_function = np.frompyfunc(math.erf, 1, 1)


def _erf(x: Array) -> Array:
    # numpy has no error function; Python's takes one number at a time.
    return np.asarray(_error_function(x), np.float64)


class Elementwise(NamedTuple):
    """A function of corresponding elements, broadcast as in numpy: the number of its operands, its
    cost, and the kinds of types for which it is defined.
    """

    function: Callable[..., Array]
    operands: int
    cost: str
    integers: bool = True
    floats: bool = True
    bools: bool = False


def _of_fractions(function: Callable[..., Array], cost: str, operands: int = 1) -> Elementwise:
    return Elementwise(function, operands, cost, integers=False)


def _of_bits(function: Callable[..., Array]) -> Elementwise:
    return Elementwise(function, 2, "bitwise", floats=False, bools=True)


def _comparison(function: Callable[..., Array]) -> Elementwise:
    return Elementwise(function, 2, "compare", bools=True)


ELEMENTWISE = {
    "add": Elementwise(np.add, 2, "add"),
    "sub": Elementwise(np.subtract, 2, "sub"),
    "mul": Elementwise(np.multiply, 2, "mul"),
    "div": _of_fractions(np.divide, "div", 2),
    "pow": _of_fractions(np.power, "pow", 2),
    "maximum": Elementwise(np.maximum, 2, "maximum", bools=True),
    "minimum": Elementwise(np.minimum, 2, "minimum", bools=True),
    "bitwise_and": _of_bits(np.bitwise_and),
    "bitwise_or": _of_bits(np.bitwise_or),
    "bitwise_xor": _of_bits(np.bitwise_xor),
    "fma": Elementwise(_fma, 3, "fma"),
    "clamp": Elementwise(_clamp, 3, "clamp"),
    "abs": Elementwise(np.abs, 1, "abs"),
    "relu": Elementwise(_relu, 1, "relu"),
    "floor": _of_fractions(np.floor, "floor"),
    "ceil": _of_fractions(np.ceil, "ceil"),
    "round": _of_fractions(np.rint, "round"),
    "exp": _of_fractions(np.exp, "exp"),
    "exp2": _of_fractions(np.exp2, "exp2"),
    "log": _of_fractions(np.log, "log"),
    "log2": _of_fractions(np.log2, "log2"),
    "sqrt": _of_fractions(np.sqrt, "sqrt"),
    "rsqrt": _of_fractions(_rsqrt, "rsqrt"),
    "sin": _of_fractions(np.sin, "sin"),
    "cos": _of_fractions(np.cos, "cos"),
    "tanh": _of_fractions(np.tanh, "tanh"),
    "erf": _of_fractions(_erf, "erf"),
    "sigmoid": _of_fractions(_sigmoid, "sigmoid"),
    "gelu": _of_fractions(_gelu, "gelu"),
    "silu": _of_fractions(_silu, "silu"),
}
"""Elementwise functions whose result has the type of the operands."""

COMPARISONS = {
    "eq": _comparison(np.equal),
    "ne": _comparison(np.not_equal),
    "lt": _comparison(np.less),
    "le": _comparison(np.less_equal),
    "gt": _comparison(np.greater),
    "ge": _comparison(np.greater_equal),
}
"""Elementwise comparisons, whose result is of type bool."""

REDUCTIONS: dict[str, Callable[..., Array]] = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "argmax": np.argmax,
    "argmin": np.argmin,
}
"""Functions that combine the elements along an axis into one."""

SCANS: dict[str, Callable[..., Array]] = {"cumsum": np.cumsum}
"""Functions that combine each element with all before it along an axis."""

MOVES = frozenset({"trans", "cat", "cast", "bitcast", "full", "arange"})
"""Operations that move, convert or make elements; `bitcast` takes their bits as another type."""

ACTIVATIONS = ("relu", "gelu", "silu", "sigmoid", "tanh")
"""The elementwise functions that may follow a matrix product."""

NAMES = (
    frozenset(ELEMENTWISE)
    | frozenset(COMPARISONS)
    | frozenset(REDUCTIONS)
    | frozenset(SCANS)
    | MOVES
    | {"softmax", "where"}
)
"""All operations of the vector engine."""
