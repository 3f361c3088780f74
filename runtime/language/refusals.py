"""The operators of Python and numpy that operands of kernels do not have, with what to use instead.

Python gives an object without operators of its own meanings that are wrong in a kernel: `==`
compares identities, `hash` is the identity, numpy makes an array of objects. Each of them, and each
operator that the language lacks, is refused here with a `TypeError`, which leaves a kernel as a
`KernelError` with its name, PE and line.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

import numpy as np

from runtime.core.errors import nearest

_NO_BRANCH = "kernels cannot branch on data"
_HOST = "numpy and Python's functions would compute on the host, and take no simulated time"

VALUE = "a value in TCM"
VALUE_ADVICE: Mapping[str, str] = {
    "truth": f"{_NO_BRANCH}; choose elements with tl.where(x > 0, a, b), and join conditions with "
    "& and |",
    "floordiv": "divide with /, and round with tl.floor(x)",
    "mod": "compute it with -, * and tl.floor(x / y)",
    "matmul": "use tl.dot(a, b) or tl.composite",
    "bits": "the vector engine has no shifts; multiply or divide by a power of 2",
    "convert": f"{_NO_BRANCH}; pass numbers as arguments of the kernel",
    "len": "use x.shape[0]",
    "iter": "take a part with a slice, as in x[i:i + 1]",
    "in": _NO_BRANCH,
    "setitem": "store a part of memory with tl.store, or join values with tl.cat",
    "hash": "equal values are not known before the run; keep it in a list, or under its name",
    "copy": "it exists in the memory of one PE only; x + 0 makes a copy there",
    "numpy": f"{_HOST}; use the functions of tl",
    "abs": "use tl.abs(x)",
    "rounding": "use tl.floor(x), tl.ceil(x), tl.round(x) or x.to(tl.int32)",
}
OF_VALUES = {
    name: f"use tl.{name}(x)"
    for name in (
        *("abs", "argmax", "argmin", "cat", "ceil", "clamp", "cos", "cumsum", "erf", "exp"),
        *("exp2", "floor", "log", "log2", "max", "maximum", "min", "minimum", "pow", "relu"),
        *("round", "rsqrt", "sigmoid", "sin", "softmax", "sqrt", "sum", "tanh"),
    )
} | {
    "item": "kernels cannot branch on data; store it with tl.store and read it on the host",
    "numpy": "store it with tl.store and read the tensor on the host",
    "ndim": "use len(x.shape)",
    "size": "use x.shape or x.numel",
    "view": "x.reshape(...) has another shape, x.to(dtype) another type",
    "permute": "x.mT exchanges the last two axes",
    "transpose": "x.mT exchanges the last two axes",
    "t": "x.mT is the transposed matrix as a view, x.T a copy",
    "unsqueeze": "use x.expand_dims(axis) or x[:, None]",
    "squeeze": "use x.reshape(...)",
    "float": "use x.to(tl.float32)",
    "half": "use x.to(tl.float16)",
    "astype": "use x.to(dtype)",
    "mean": "use tl.sum(x) / x.numel",
    "masked_fill": "use tl.where(mask, value, x)",
}
"""Advice for attributes of tensors and arrays that a value lacks."""
POINTER = "a pointer"
POINTER_ADVICE: Mapping[str, str] = {
    "compare": "it is equal or unequal to a pointer, and has no order; compare addresses with "
    "int(p)",
    "arithmetic": "it is moved with + and - by a whole number of elements",
    "getitem": "load a block with tl.load(p + start, shape)",
    "setitem": "store a block with tl.store(p + start, value)",
    "convert": "int(p) is its address",
    "len": "pass the number of elements as an argument of the kernel",
    "numpy": f"{_HOST}; load the elements with tl.load",
}
OF_TENSORS = dict.fromkeys(
    ("shape", "numel", "nbytes", "size", "dim", "ndim", "strides", "stride"),
    "pass what the kernel needs of the tensor as an argument of the launch",
) | {"to": "load a block with tl.load and convert that", "T": "load a block and transpose that"}
"""Advice for attributes of tensors that a pointer lacks."""
REF = "a matrix in memory (tl.ref)"
REF_ADVICE: Mapping[str, str] = {
    "arithmetic": "multiply it with tl.dot or tl.composite, or load a block with tl.load",
    "compare": "it is equal or unequal to another tl.ref, and has no order",
    "matmul": "use tl.dot(a, b) or tl.composite",
    "getitem": "move its pointer, as in tl.ref(p + start, shape, strides)",
    "convert": "load its elements with tl.load",
    "len": "use its shape",
    "numpy": f"{_HOST}; load the elements with tl.load",
}

PENDING = "a pending result"
PENDING_ADVICE: Mapping[str, str] = {
    "convert": "it has no elements before the kernel has waited for it; use tl.wait(pending)",
    "numpy": "it has no elements before the kernel has waited for it; use tl.wait(pending)",
}

_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BINARY = {
    "add": ("+", "arithmetic"),
    "sub": ("-", "arithmetic"),
    "mul": ("*", "arithmetic"),
    "truediv": ("/", "arithmetic"),
    "pow": ("**", "pow"),
    "floordiv": ("//", "floordiv"),
    "mod": ("%", "mod"),
    "divmod": ("divmod()", "mod"),
    "matmul": ("@", "matmul"),
    "and": ("&", "bits"),
    "or": ("|", "bits"),
    "xor": ("^", "bits"),
    "lshift": ("<<", "bits"),
    "rshift": (">>", "bits"),
}
_OTHER = {
    "neg": ("-", "arithmetic"),
    "pos": ("+", "arithmetic"),
    "abs": ("abs()", "abs"),
    "invert": ("~", "bits"),
    "bool": ("the truth value (if, while, assert, and, or, not, in, a < b < c)", "truth"),
    "int": ("int()", "convert"),
    "float": ("float()", "convert"),
    "complex": ("complex()", "convert"),
    "index": ("the use as an integer, as in range(x),", "convert"),
    "round": ("round()", "rounding"),
    "trunc": ("math.trunc()", "rounding"),
    "floor": ("math.floor()", "rounding"),
    "ceil": ("math.ceil()", "rounding"),
    "len": ("len()", "len"),
    "iter": ("iteration", "iter"),
    "reversed": ("reversed()", "iter"),
    "contains": ("in", "in"),
    "getitem": ("[...]", "getitem"),
    "setitem": ("[...] =", "setitem"),
    "delitem": ("del [...]", "setitem"),
    "hash": ("hash(), as in sets and keys,", "hash"),
    "reduce_ex": ("copying by copy or pickle", "copy"),
    "array": ("np.asarray()", "numpy"),
}
"""The symbol of each method `__name__`, and the kind of advice."""

_MEANINGFUL = {
    VALUE: "add radd sub rsub mul rmul truediv rtruediv pow rpow neg pos getitem "
    "and rand or ror xor rxor invert eq ne lt le gt ge",
    POINTER: "add radd sub eq ne bool hash int reduce_ex",
    REF: "eq ne bool hash reduce_ex",
    PENDING: "eq ne bool hash",
}
"""The methods that each operand has itself, or for which Python's own meaning is right."""

_UFUNCS: Mapping[str, Callable[[Any, Any], object]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "power": lambda a, b: a**b,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}
"""The operators that numpy's scalars, on the left of an operand, hand to it as functions."""


def refuse_operators(cls: type, operand: str, advice: Mapping[str, str]) -> None:
    """Make every operator that the class `cls` lacks a `TypeError` with advice."""
    kept = _MEANINGFUL[operand].split()
    for name, (symbol, kind) in _methods().items():
        if name not in kept:
            text = advice.get(kind) or advice.get("arithmetic") or advice["convert"]
            setattr(cls, f"__{name}__", _refusal(operand, symbol, text))
    cls.__array_ufunc__ = _ufunc(operand, advice["numpy"])  # pyright: ignore[reportAttributeAccessIssue] - new
    cls.__array_function__ = _numpy_function(operand, advice["numpy"])  # pyright: ignore[reportAttributeAccessIssue] - new


def refuse_assignments(cls: type) -> None:
    """Make `+=` and its like on a part of a value a `TypeError`: they would change nothing."""
    for name, symbol in {"iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/="}.items():
        advice = f"it would make a new value and not change the whole; write y = x {symbol[0]} z"
        setattr(cls, f"__{name}__", _refusal("a part of a value", symbol, advice))


def absent_attribute(
    operand: str, name: str, advice: Mapping[str, str], known: Iterable[str]
) -> AttributeError:
    """The error for an attribute that an operand lacks: advice, or the nearest of the `known`."""
    text = f": {advice[name]}" if name in advice else nearest(name, known)
    return AttributeError(f"{operand} has no attribute {name!r}{text}")


def _methods() -> dict[str, tuple[str, str]]:
    comparisons = {name: (symbol, "compare") for name, symbol in _COMPARISONS.items()}
    reflected = {f"r{name}": entry for name, entry in _BINARY.items()}
    return comparisons | _BINARY | reflected | _OTHER


def _refusal(operand: str, symbol: str, advice: str) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise TypeError(f"{symbol} is not defined for {operand}: {advice}")

    return refuse


def _ufunc(operand: str, advice: str) -> Callable[..., object]:
    def apply(_: object, ufunc: np.ufunc, method: str, *inputs: Any, **options: object) -> object:
        plain = method == "__call__" and not options and ufunc.__name__ in _UFUNCS
        # In comparisons, numpy makes arrays without axes of its scalars.
        if not plain or any(getattr(each, "ndim", 0) for each in inputs if _of_numpy(each)):
            raise TypeError(f"np.{ufunc.__name__} is not defined for {operand}: {advice}")
        a, b = (each.item() if _of_numpy(each) else each for each in inputs)
        return _UFUNCS[ufunc.__name__](a, b)

    return apply


def _of_numpy(each: object) -> bool:
    return isinstance(each, np.generic | np.ndarray)


def _numpy_function(operand: str, advice: str) -> Callable[..., NoReturn]:
    def refuse(_: object, function: Callable[..., object], *__: object) -> NoReturn:
        raise TypeError(f"np.{function.__name__} is not defined for {operand}: {advice}")

    return refuse
