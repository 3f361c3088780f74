"""The kernel language. A kernel is plain blocking Python that every PE of a launch runs on its own shard.

def scale(x, n):
    offset = tl.program_id(0) * n
    tl.store(x + offset, tl.load(x + offset, (n,)) * 2.0)
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from runtime.dtypes import DType, bfloat16, float16, float32, int8, int32
from runtime.language.context import running_kernel
from runtime.language.value import Pointer, Shape, Value

__all__ = [
    "DType",
    "Pointer",
    "Value",
    "abs",
    "add",
    "bfloat16",
    "cat",
    "cdiv",
    "cos",
    "div",
    "exp",
    "float16",
    "float32",
    "int8",
    "int32",
    "load",
    "log",
    "maximum",
    "minimum",
    "mul",
    "num_programs",
    "program_id",
    "recv",
    "scratch",
    "send",
    "sigmoid",
    "sin",
    "sqrt",
    "store",
    "sub",
]  # fmt: skip

Operand = Value | float


def program_id(axis: int) -> int:
    """Axis 0: the PE in its cube. Axis 1: the cube in its SIP."""
    return running_kernel().program_id(axis)


def num_programs(axis: int) -> int:
    """Axis 0: the PEs of a cube that run this launch. Axis 1: the cubes."""
    return running_kernel().num_programs(axis)


def cdiv(a: int, b: int) -> int:
    """Ceiling division of plain integers."""
    return -(-a // b)


def load(pointer: Pointer, shape: Shape | int) -> Value:
    """Copy a contiguous row-major block of `shape` elements from memory to TCM, and wait for it."""
    return running_kernel().load(pointer, _shape(shape))


def store(pointer: Pointer, value: Value) -> None:
    """Copy `value` to a contiguous row-major block of memory, and wait until the memory has acknowledged it."""
    running_kernel().store(pointer, _value(value, "tl.store"))


def send(direction: str, value: Value) -> None:
    """Send `value` to the neighbour in `direction` (`E`, `W`, `N`, `S`, `global_E` ...); waits while its ring is full.

    A value larger than a slot goes as several slots.
    """
    running_kernel().send(direction, _value(value, "tl.send"))


def recv(direction: str, shape: Shape | int, dtype: DType) -> Value:
    """Wait for the next value from the neighbour in `direction`. Shape and dtype must be those of the send."""
    return running_kernel().recv(direction, _shape(shape), dtype)


def scratch() -> AbstractContextManager[None]:
    """`with tl.scratch():` values made inside give their TCM back at the end of the block and must not be used after."""
    return running_kernel().scratch()


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
    """Elementwise `a / b`, floating-point values only."""
    return running_kernel().math("div", (a, b))


def maximum(a: Operand, b: Operand) -> Value:
    """Elementwise maximum."""
    return running_kernel().math("maximum", (a, b))


def minimum(a: Operand, b: Operand) -> Value:
    """Elementwise minimum."""
    return running_kernel().math("minimum", (a, b))


def cat(values: Sequence[Value]) -> Value:
    """The values of one type behind each other, as one flat value: a copy inside TCM."""
    return running_kernel().cat(values)


def exp(x: Value) -> Value:
    """Elementwise exponential."""
    return running_kernel().math("exp", (x,))


def log(x: Value) -> Value:
    """Elementwise natural logarithm."""
    return running_kernel().math("log", (x,))


def sqrt(x: Value) -> Value:
    """Elementwise square root."""
    return running_kernel().math("sqrt", (x,))


def abs(x: Value) -> Value:  # noqa: A001 - the name Triton users know
    """Elementwise absolute value."""
    return running_kernel().math("abs", (x,))


def sigmoid(x: Value) -> Value:
    """Elementwise logistic function."""
    return running_kernel().math("sigmoid", (x,))


def sin(x: Value) -> Value:
    """Elementwise sine."""
    return running_kernel().math("sin", (x,))


def cos(x: Value) -> Value:
    """Elementwise cosine."""
    return running_kernel().math("cos", (x,))


def _shape(shape: Shape | int) -> Shape:
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(length < 0 for length in lengths):
        raise ValueError(f"shape {lengths}: a length cannot be negative")
    return lengths


def _value(value: Value, operation: str) -> Value:
    # Kernels are not type-checked before they run, and an AttributeError deep inside the PE would not say what to do.
    if not isinstance(value, Value):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{operation} takes a value in TCM, such as tl.load returns, not {type(value).__name__} {value!r}")
    return value
