"""The functions of `libdevice` that the vector engine has."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

from kernbench.triton import triton_api
from kernbench.triton.builder.builder_arithmetic import operation
from kernbench.triton.builder.program import running
from kernbench.triton.indices.index_values import IndexValue
from runtime.core.errors import nearest

_language = triton_api.module("triton.language")


def _tensor(given: Any) -> Any:
    if isinstance(given, _language.tensor):
        return given
    return _language.full([], getattr(given, "value", given), _language.float32)


def _applied(name: str, *given: Any) -> Any:
    tensors = [_tensor(each) for each in given]
    if len(tensors) > 1:
        tensors = list(_language.broadcast(*tensors)) if len(tensors) == 2 else tensors
    handle = operation(name, *(each.handle for each in tensors))
    scalar = handle.dtype.scalar
    shape = list(handle.shape)
    return _language.tensor(handle, _language.block_type(scalar, shape) if shape else scalar)


def _constant(tensor: Any, number: float) -> IndexValue:
    return IndexValue.constant(tensor.handle.dtype.scalar, number, tensor.handle.shape)


def _wrapped(tensor: Any, handle: Any) -> Any:
    return _language.tensor(handle, tensor.type)


def _expm1(given: Any) -> Any:
    x = _tensor(given)
    return _wrapped(x, operation("sub", operation("exp", x.handle), _constant(x, 1.0)))


def _log1p(given: Any) -> Any:
    x = _tensor(given)
    return _wrapped(x, operation("log", operation("add", x.handle, _constant(x, 1.0))))


def _is_nan(given: Any) -> Any:
    x = _tensor(given)
    return _compared(x, operation("ne", x.handle, x.handle))


def _is_infinite(given: Any) -> Any:
    x = _tensor(given)
    infinity = _constant(x, float("inf"))
    return _compared(x, operation("eq", operation("abs", x.handle), infinity))


def _compared(tensor: Any, handle: Any) -> Any:
    shape = list(tensor.handle.shape)
    scalar = _language.int1
    return _language.tensor(handle, _language.block_type(scalar, shape) if shape else scalar)


def _truncated(given: Any) -> Any:
    x = _tensor(given)
    falls = operation("lt", x.handle, _constant(x, 0.0))
    whole = operation("where", falls, operation("ceil", x.handle), operation("floor", x.handle))
    return _wrapped(x, whole)


def absent(name: str, *_: object) -> NoReturn:
    """The error of a function that the vector engine lacks."""
    running().fail(f"libdevice.{name} is code of a GPU{nearest(name, FUNCTIONS)}")


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{
        name: partial(_applied, name)
        for name in (
            *("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf"),
            *("floor", "ceil", "abs", "pow", "fma", "round"),
        )
    },
    "rint": partial(_applied, "round"),
    "nearbyint": partial(_applied, "round"),
    "fabs": partial(_applied, "abs"),
    "fast_expf": partial(_applied, "exp"),
    "fast_logf": partial(_applied, "log"),
    "div_rn": partial(_applied, "div"),
    "sqrt_rn": partial(_applied, "sqrt"),
    "trunc": _truncated,
    "expm1": _expm1,
    "log1p": _log1p,
    "isnan": _is_nan,
    "isinf": _is_infinite,
}
