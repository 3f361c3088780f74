"""The arithmetic of the math engine: numpy functions by name. Results keep the type of the operands."""

from collections.abc import Callable, Sequence

import numpy as np

from runtime.dtypes import DType
from runtime.language.value import Array, Value

BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


UNARY: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "sigmoid": _sigmoid,
    "sin": np.sin,
    "cos": np.cos,
}


def result_shape(name: str, operands: Sequence[Value | float]) -> tuple[tuple[int, ...], DType]:
    """Shape (broadcast as in numpy) and type of `name(*operands)`; a Python number takes the type of the value beside it."""
    values = [operand for operand in operands if isinstance(operand, Value)]
    dtypes = {value.dtype.name for value in values}
    if len(dtypes) != 1:
        raise TypeError(f"{name}: operands have types {', '.join(sorted(dtypes)) or 'none'}; they must be equal")
    dtype = values[0].dtype
    if not dtype.is_floating_point and (name == "div" or (name in UNARY and name != "abs")):
        raise TypeError(f"{name}: not defined for {dtype.name}, only for floating-point values")
    for operand in operands:
        if not isinstance(operand, Value) and not dtype.holds(operand):
            raise TypeError(f"{name}: {operand} beside a value of {dtype.name} is not an {dtype.name} itself")
    try:
        return np.broadcast_shapes(*(value.shape for value in values)), dtype
    except ValueError:
        shapes = " and ".join(str(value.shape) for value in values)
        raise ValueError(f"{name}: shapes {shapes} do not broadcast") from None


def evaluate(name: str, operands: Sequence[Value | float]) -> Value:
    """Compute `name(*operands)`, rounding once to the type of the operands; without data only shape and type result.

    Types of 16 bits are computed in float32.
    """
    shape, dtype = result_shape(name, operands)
    if any(isinstance(operand, Value) and operand.data is None for operand in operands):
        return Value(shape, dtype, None)
    compute = np.dtype(np.float32) if dtype.is_floating_point and dtype.itemsize < 4 else dtype.numpy
    with np.errstate(all="ignore"):
        arrays: list[Array] = [
            np.asarray(operand.data if isinstance(operand, Value) else dtype.numpy.type(operand), compute)
            for operand in operands
        ]
        result = BINARY[name](*arrays) if name in BINARY else UNARY[name](*arrays)
        return Value(shape, dtype, result.astype(dtype.numpy, copy=False))


def concatenated(values: Sequence[Value]) -> Value:
    """The elements of `values`, all of one type, behind each other in one flat value."""
    dtypes = {value.dtype.name for value in values}
    if len(dtypes) != 1:
        raise TypeError(f"cat: values have types {', '.join(sorted(dtypes)) or 'none'}; they must be equal")
    arrays = [value.data.reshape(-1) for value in values if value.data is not None]
    data = np.concatenate(arrays) if len(arrays) == len(values) else None
    return Value((sum(value.numel for value in values),), values[0].dtype, data)
