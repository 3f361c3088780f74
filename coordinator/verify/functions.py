"""The functions of the vector engine by name, for the replay of the op log.

They are defined here once more, because the replay shares no code with the simulation.
"""

import math
from collections.abc import Callable

import numpy as np

from coordinator.verify.elements import Array


def _fma(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


def _clamp(x: Array, low: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


def _sigmoid(x: Array) -> Array:
    return np.reciprocal(np.exp(np.negative(x)) + 1.0)


def _silu(x: Array) -> Array:
    return x * _sigmoid(x)


def _relu(x: Array) -> Array:
    return np.maximum(x, np.zeros_like(x))


def _gelu(x: Array) -> Array:
    return x / 2.0 * (np.tanh((x + 0.044715 * x**3) * np.sqrt(2.0 / np.pi)) + 1.0)


def _rsqrt(x: Array) -> Array:
    return np.reciprocal(np.sqrt(x))


def _erf(x: Array) -> Array:
    return np.array([math.erf(each) for each in x.reshape(-1)], np.float64).reshape(x.shape)


ELEMENTWISE: dict[str, tuple[int, Callable[..., Array]]] = {
    "add": (2, np.add),
    "sub": (2, np.subtract),
    "mul": (2, np.multiply),
    "div": (2, np.true_divide),
    "pow": (2, np.float_power),
    "maximum": (2, np.maximum),
    "minimum": (2, np.minimum),
    "bitwise_and": (2, np.bitwise_and),
    "bitwise_or": (2, np.bitwise_or),
    "bitwise_xor": (2, np.bitwise_xor),
    "fma": (3, _fma),
    "clamp": (3, _clamp),
    "exp": (1, np.exp),
    "exp2": (1, np.exp2),
    "log": (1, np.log),
    "log2": (1, np.log2),
    "sqrt": (1, np.sqrt),
    "rsqrt": (1, _rsqrt),
    "floor": (1, np.floor),
    "ceil": (1, np.ceil),
    "round": (1, np.round),
    "erf": (1, _erf),
    "abs": (1, np.absolute),
    "sigmoid": (1, _sigmoid),
    "sin": (1, np.sin),
    "cos": (1, np.cos),
    "tanh": (1, np.tanh),
    "relu": (1, _relu),
    "gelu": (1, _gelu),
    "silu": (1, _silu),
}
"""Number of operands and function of the operations on corresponding elements."""
COMPARISONS: dict[str, Callable[..., Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
"""Operations on corresponding elements whose result is of type bool."""
REDUCTIONS: dict[str, Callable[..., Array]] = {"sum": np.sum, "max": np.amax, "min": np.amin}
"""Operations that combine the elements along an axis."""
POSITIONS: dict[str, Callable[..., Array]] = {"argmax": np.argmax, "argmin": np.argmin}
"""Operations that find the first of the extreme elements along an axis."""
