"""Elementwise functions of tensors: `torch.add`, `torch.exp`, `torch.eq` and the like.

Each function launches a shipped kernel on every PE that holds elements of the result and returns at
once. The result lies where the operand of its shape lies; other operands are loaded through their
virtual addresses. Types are promoted and shapes broadcast as in PyTorch. A result is computed
exactly and rounded once to float32 and then to its type.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar, cast

import numpy as np

from runtime.core.dtypes import DType, boolean, uint8
from runtime.device.kernels.elementwise import Formula, Loaded
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.operations.elementwise_launch import (
    apply_operation,
    checked_operands,
    checked_tensors,
    launch,
    must_be,
)
from runtime.device.operations.promotion import (
    is_number,
    kind,
    result_type,
    type_name,
)

T = TypeVar("T", bound=DeviceTensor)


class UnaryFunction(Protocol):
    """A function of a tensor, which is a method of tensors as well."""

    def __call__(self, input: T, *, out: T | None = None) -> T:  # noqa: A002 - PyTorch's name
        """The result, a new tensor or `out`."""
        ...

    def __get__(self, instance: T, owner: type[T]) -> Callable[[], T]: ...


class BinaryFunction(Protocol):
    """A function of two tensors or numbers, which is a method of tensors as well."""

    def __call__(self, input: T | float, other: T | float, *, out: T | None = None) -> T:  # noqa: A002
        """The result, a new tensor or `out`."""
        ...

    def __get__(self, instance: T, owner: type[T]) -> Callable[[T | float], T]: ...


def add(input: T | float, other: T | float, *, alpha: float = 1, out: T | None = None) -> T:  # noqa: A002 - PyTorch's name
    """`input + alpha * other`."""
    return _scaled("add", input, other, alpha, out)


def sub(input: T | float, other: T | float, *, alpha: float = 1, out: T | None = None) -> T:  # noqa: A002
    """`input - alpha * other`; not with a bool tensor."""
    of_bool = [_type_of(each) == boolean for each in (input, other)]
    if np.any(of_bool):
        which, use = ("two bool tensors", "`^`") if np.all(of_bool) else ("a bool tensor", "`~`")
        raise NotImplementedError(
            f"Subtraction, the `-` operator, with {which} is not supported. Use the {use} "
            "operator, or convert with x.int()."
        )
    return _scaled("sub", input, other, alpha, out)


def mul(input: T | float, other: T | float, *, out: T | None = None) -> T:  # noqa: A002
    """`input * other`."""
    return apply_operation("mul", "mul", (input, other), out=out)


def div(input: T | float, other: T | float, *, out: T | None = None) -> T:  # noqa: A002
    """`input / other`; of integers float32. A quotient by 0 is infinite or NaN."""
    return apply_operation("div", "div", (input, other), out=out, floating=True)


def maximum(input: T, other: T, *, out: T | None = None) -> T:  # noqa: A002
    """The greater of two elements; NaN where either is NaN."""
    return apply_operation("maximum", "maximum", checked_tensors("maximum", input, other), out=out)


def minimum(input: T, other: T, *, out: T | None = None) -> T:  # noqa: A002
    """The lesser of two elements; NaN where either is NaN."""
    return apply_operation("minimum", "minimum", checked_tensors("minimum", input, other), out=out)


def neg(input: T, *, out: T | None = None) -> T:  # noqa: A002
    """`-input`."""
    (x,) = checked_tensors("neg", input)
    if x.dtype == boolean:
        raise NotImplementedError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` operator instead."
        )
    # An unsigned type has no -1, a product keeps the sign of a zero.
    if x.dtype == uint8:
        return apply_operation("neg", "sub", (0, x), out=out)
    return apply_operation("neg", "mul", (x, -1), out=out)


def pow(input: T, exponent: float, *, out: T | None = None) -> T:  # noqa: A001, A002 - PyTorch's names
    """`input ** exponent` for the exponents 1, 2 and 0.5, which the vector engine has."""
    (x,) = checked_tensors("pow", input)
    if not is_number(exponent):
        must_be("pow", "exponent", 2, exponent, "Number")
    if exponent == 2:
        return apply_operation("pow", "mul", (x, x, exponent), out=out)
    if exponent == 1:
        return apply_operation("pow", "", (x, exponent), out=out)
    if exponent == 0.5:
        return apply_operation("pow", "sqrt", (x, exponent), out=out, floating=True)
    raise NotImplementedError(
        f"pow(): the vector engine has the exponents 0.5, 1 and 2, not {exponent}; multiply, or "
        "use torch.exp and torch.log"
    )


def clamp(
    input: T,  # noqa: A002
    min: float | None = None,  # noqa: A002
    max: float | None = None,  # noqa: A002
    *,
    out: T | None = None,
) -> T:
    """Elements below `min` become `min`, above `max` become `max`; both are numbers."""
    (x,) = checked_tensors("clamp", input)
    bounds = [each for each in (min, max) if each is not None]
    if not bounds:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    for position, (bound, each) in enumerate((("min", min), ("max", max)), 2):
        if each is not None and not is_number(each):
            must_be("clamp", bound, position, each, "Number")
    dtype = result_type((x, *bounds))
    if kind(dtype) == 1:
        # A bound beyond the range of the type bounds nothing; wrapped round, it would.
        limits = np.iinfo(dtype.numpy.name)
        bounds = [int(np.clip(int(each), limits.min, limits.max)) for each in bounds]
    name = "clamp" if len(bounds) == 2 else "maximum" if max is None else "minimum"
    return apply_operation("clamp", name, (x, *bounds), out=out)


def converted(input: T, dtype: DType, *, out: T | None = None) -> T:  # noqa: A002
    """The elements in another type, computed on the device: a copy that is placed like `input`."""
    target = input.like(input.shape, dtype) if out is None else out
    launch("to", Formula("", (Loaded(0),), input.dtype), target, [input])
    return target


def bitwise_not(input: T, *, out: T | None = None) -> T:  # noqa: A002
    """`~input`, of integers and bool."""
    (x,) = checked_tensors("bitwise_not", input)
    return _bits("bitwise_xor", "bitwise_not")(x, x.dtype == boolean or -1, out=out)


def _bits(name: str, function: str = "") -> BinaryFunction:
    def apply(input: T | float, other: T | float, *, out: T | None = None) -> T:  # noqa: A002
        called = function or name
        dtype = result_type(checked_operands(called, (input, other)))
        if kind(dtype) == 2:
            raise NotImplementedError(f"\"{called}\" not implemented for '{type_name(dtype)}'")
        return apply_operation(called, name, (input, other), out=out)

    apply.__name__ = apply.__qualname__ = name
    return cast("BinaryFunction", apply)


bitwise_and = _bits("bitwise_and")
bitwise_or = _bits("bitwise_or")
bitwise_xor = _bits("bitwise_xor")


def _unary(name: str, described: str, *, integers: bool = False) -> UnaryFunction:
    def function(input: T, *, out: T | None = None) -> T:  # noqa: A002
        (x,) = checked_tensors(name, input)
        if integers and x.dtype == boolean:
            raise NotImplementedError(f"Boolean inputs not supported for {name}")
        return apply_operation(name, name, (x,), out=out, floating=not integers)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = described
    return cast("UnaryFunction", function)


exp = _unary("exp", "The exponential; of integers float32.")
log = _unary("log", "The natural logarithm; -inf at 0, NaN below.")
sqrt = _unary("sqrt", "The square root; NaN below 0.")
sin = _unary("sin", "The sine of radians.")
cos = _unary("cos", "The cosine of radians.")
tanh = _unary("tanh", "The hyperbolic tangent.")
sigmoid = _unary("sigmoid", "`1 / (1 + exp(-x))`.")
relu = _unary("relu", "`max(x, 0)`.", integers=True)
abs = _unary("abs", "The absolute value.", integers=True)  # noqa: A001 - PyTorch's name


def _comparison(name: str, described: str) -> BinaryFunction:
    def function(input: T | float, other: T | float, *, out: T | None = None) -> T:  # noqa: A002
        return apply_operation(name, name, (input, other), out=out, compares=True)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{described}`, elementwise, as a bool tensor."
    return cast("BinaryFunction", function)


eq = _comparison("eq", "input == other")
ne = _comparison("ne", "input != other")
lt = _comparison("lt", "input < other")
le = _comparison("le", "input <= other")
gt = _comparison("gt", "input > other")
ge = _comparison("ge", "input >= other")


def _scaled(name: str, a: T | float, b: T | float, alpha: float, out: T | None) -> T:
    if not is_number(alpha):
        must_be(name, "alpha", 3, alpha, "Number")
    if alpha == 1:
        return apply_operation(name, name, (a, b), out=out)
    dtype = result_type(checked_operands(name, (a, b)))
    if kind(dtype) < 2 and not float(alpha).is_integer():
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )
    if not isinstance(b, DeviceTensor):
        return apply_operation(name, name, (a, b * alpha), out=out)
    # The sign of an unsigned type does not matter: its products wrap round.
    return apply_operation(name, "fma", (b, alpha if name == "add" else -alpha, a), out=out)


def _type_of(operand: object) -> DType | None:
    return operand.dtype if isinstance(operand, DeviceTensor) else None
