"""The key of a Triton kernel: what its commands depend on beside the arguments of its launch.

Kernels with one key have the function of one object under `@triton.jit`, equal constants, and equal
numbers among the global variables that this function and those which it calls read. As with Triton
itself, nothing else that a kernel reads changes.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, cast

from runtime.core.identity import Identity

_PLAIN = (int, float, bool, str, type(None))
_MUTABLE = (list, dict, set, bytearray)


class _NoKey(Exception):  # noqa: N818 - no error, but an answer
    """An object that may change without a trace."""


def kernel_key(
    function: Any, names: Sequence[str], constants: Mapping[str, Any], stages: int
) -> tuple[object, ...] | None:
    """The key of a kernel whose arguments have `names`; None for one that depends on an object
    which may change.
    """
    inside = list[int]()
    try:
        constant = [(name, _part(each, inside)) for name, each in sorted(constants.items())]
        return (_part(function, inside), tuple(names), tuple(constant), stages)
    except _NoKey:
        return None


def _part(each: Any, inside: list[int]) -> object:
    each = getattr(each, "value", each) if type(each).__name__ == "constexpr" else each
    kind = cast("type[object]", type(each))
    if kind in _PLAIN:
        # Zeros of two signs, and NaN.
        return kind, each.hex() if kind is float else each
    if isinstance(each, tuple):
        return (kind, *[_part(item, inside) for item in cast("tuple[object, ...]", each)])
    if isinstance(each, _MUTABLE):
        raise _NoKey
    if kind.__name__ == "dtype":
        return kind, str(each)
    if hasattr(each, "fn") and hasattr(each, "rewrite"):
        return Identity(each), _globals(each.fn, inside)
    return Identity(each)


def _globals(function: Any, inside: list[int]) -> tuple[object, ...]:
    """The values of the variables outside of a function that it reads."""
    if id(function) in inside:
        return ()
    inside.append(id(function))
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    values = {name: cell.cell_contents for name, cell in cells}
    values |= {
        name: function.__globals__[name]
        for name in dict.fromkeys(_names(function.__code__))
        if name in function.__globals__
    }
    return tuple([(name, _part(each, inside)) for name, each in values.items()])


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)
