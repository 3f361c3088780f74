"""Computes the operations of the op log: a second implementation of the kernel language.

It is written from the specification and shares no code with `runtime.language`, so that an error in
either of them shows as a difference. Floating-point results are computed in float64, rounded to
float32 and then to the element type; those of float64 are not rounded again. A sum is rounded once.
A tile product is summed in float64 with its accumulator and rounded once to the accumulator's type.
Integers wrap around.
"""

from collections.abc import Callable, Container, Sequence
from math import prod
from typing import Any

import numpy as np

from coordinator.verify.elements import NUMPY, SATURATED, Array, is_float
from coordinator.verify.functions import COMPARISONS, ELEMENTWISE, POSITIONS, REDUCTIONS
from runtime.core.errors import nearest
from runtime.core.trace import OpRecord

COPIES = {
    "host": frozenset({"MemoryReadMsg"}),
    "pe_dma": frozenset({"load", "gather", "store", "ipcq_send", "ipcq_recv"}),
    "pe_fetch_store": frozenset({"fetch"}),
    "hbm_ctrl": frozenset({"atomic old"}),
    "sram": frozenset({"atomic old"}),
}
"""Operations that move elements, by engine."""

_ROUNDING = frozenset(
    {"exp", "exp2", "log", "log2", "pow", "sin", "cos", "tanh", "erf", "sigmoid", "gelu", "silu"}
    | {"softmax", "sum", "cumsum", "fma", "gemm"}
)
"""Operations whose last bits depend on the order of additions or on a library's approximation."""
_CHOOSING = frozenset({"maximum", "minimum", "max", "min", "relu", "clamp"})
"""Operations that may return either of +0 and -0."""


def copies(record: OpRecord) -> bool:
    """Whether the operation moves elements without a change."""
    return record.name in COPIES.get(record.engine, ())


def may_differ(record: OpRecord, result: Array) -> bool:
    """Whether a correct implementation can give other bits than `result`.

    Reasons: rounding, the sign of a zero, the payload of a NaN.
    """
    if not is_float(record.dtype):
        return False
    chooses_zero = record.name in _CHOOSING and not result.all()
    return record.name in _ROUNDING or chooses_zero or bool(np.isnan(result).any())


def evaluate(record: OpRecord, inputs: Sequence[Array | float]) -> Array:
    """The result in the type and shape of the record; `ValueError` for an impossible operation."""
    with np.errstate(all="ignore"):
        result = np.asarray(_function(record)(record, inputs))
    if result.shape != record.shape:
        raise ValueError(f"the result has shape {result.shape}, the record has {record.shape}")
    if result.dtype != NUMPY[record.dtype]:
        raise ValueError(f"the result is {result.dtype}, the record has {record.dtype}")
    return result


def _function(record: OpRecord) -> Callable[[OpRecord, Sequence[Array | float]], Array]:
    engine, name = record.engine, record.name
    if (engine, name) in _FUNCTIONS:
        return _FUNCTIONS[engine, name]
    if copies(record):
        return _copy
    for of, names, function in _KINDS:
        if engine in of and name in names:
            return function
    known = sorted(
        {other for (of, other) in _FUNCTIONS if of == engine} | COPIES.get(engine, frozenset())
    )
    if engine in _MEMORIES:
        known += _ATOMICS
    if engine == "pe_math":
        known += [*ELEMENTWISE, *COMPARISONS, *REDUCTIONS, *POSITIONS]
    if not known:
        raise ValueError(f"engine {engine!r} computes nothing")
    raise ValueError(f"engine {engine} has no operation {name!r}{nearest(name, known)}")


def _copy(record: OpRecord, inputs: Sequence[Array | float]) -> Array:
    (source,) = _arrays(inputs, 1)
    target = NUMPY[record.dtype]
    if source.dtype != target and np.uint8 not in (source.dtype, target):
        raise ValueError(f"a copy of {source.dtype} to {record.dtype}: it does not convert")
    if source.nbytes != prod(record.shape) * target.itemsize:
        raise ValueError(
            f"a copy of {source.nbytes} bytes to {prod(record.shape) * target.itemsize}"
        )
    return source.reshape(-1).view(target).reshape(record.shape)


def _gather(record: OpRecord, inputs: Sequence[Array | float]) -> Array:
    """Rows one behind the other; their list, if it is a value, is the last input."""
    rows, joined = _arrays(inputs, 1, len(inputs)), list[Array]()
    left = record.nbytes
    while left > 0 and rows:
        row = rows.pop(0)
        joined.append(row.reshape(-1))
        left -= row.nbytes
    if left or len(rows) > 1 or any(each.dtype.kind not in "iu" for each in rows):
        raise ValueError(f"rows and a list of integers are not {record.nbytes:,} bytes")
    if {row.dtype for row in joined} != {NUMPY[record.dtype]}:
        raise ValueError(f"rows of other types than {record.dtype}: it does not convert")
    return np.concatenate(joined).reshape(record.shape)


def _round(record: OpRecord, inputs: Sequence[Array | float]) -> Array:
    (source,) = _arrays(inputs, 1)
    return _converted(source, record.dtype)


def _same_bits(record: OpRecord, inputs: Sequence[Array | float]) -> Array:
    (source,) = _arrays(inputs, 1)
    return np.ascontiguousarray(source).view(NUMPY[record.dtype])


def _gemm(_: OpRecord, inputs: Sequence[Array | float]) -> Array:
    a, b, *rest = _arrays(inputs, 2, 3)
    accumulator = "i32" if a.dtype == np.int8 else "f32"
    if (
        a.dtype != b.dtype
        or a.dtype == np.int32
        or a.ndim != 2
        or b.ndim != 2
        or a.shape[1] != b.shape[0]
    ):
        raise ValueError(
            f"a product of {a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)} does not exist"
        )
    if rest and (rest[0].dtype != NUMPY[accumulator] or rest[0].shape != (a.shape[0], b.shape[1])):
        raise ValueError(f"it accumulates on {rest[0].dtype}{list(rest[0].shape)}")
    # float64 holds every product of two float16 exactly, and sums of int8 products far beyond
    # int32.
    product = a.astype(np.float64) @ b.astype(np.float64)
    if accumulator == "i32":
        return (product.astype(np.int64) + (rest[0] if rest else 0)).astype(np.int32)
    return (rest[0].astype(np.float64) + product if rest else product).astype(np.float32)


def _elementwise(record: OpRecord, inputs: Sequence[Array | float]) -> Array:
    count, function = ELEMENTWISE[record.name]
    if len(inputs) != count:
        raise ValueError(f"it takes {count} operands, not {len(inputs)}")
    dtype = NUMPY[record.dtype]
    if not any(isinstance(each, np.ndarray) and each.dtype == dtype for each in inputs):
        raise ValueError(f"none of its operands is {record.dtype}")
    wide = np.dtype(np.float64) if is_float(record.dtype) else dtype
    # Integers are computed in their own type, in which they wrap around as in the hardware.
    operands = [_widened(each, dtype, wide) for each in inputs]
    return _narrowed(function(*operands), record.dtype)


def _atomic(record: OpRecord, inputs: Sequence[Array | float]) -> Array:
    """New elements of a memory from the old ones and an operand; of `cas`, what it compares is the
    last input.
    """
    count, function = _ATOMICS[record.name]
    old, value, *compare = _arrays(inputs, count)
    if {each.dtype for each in (old, value, *compare)} != {NUMPY[record.dtype]}:
        raise ValueError(f"its operands are not {record.dtype}")
    if isinstance(function, str):
        return _narrowed(ELEMENTWISE[function][1](*_wide_pair(old, value)), record.dtype)
    unsigned = f"u{old.dtype.itemsize}"
    bits = [each.reshape(-1).view(unsigned) for each in (old, value, *compare)]
    return np.asarray(function(*bits)).view(old.dtype).reshape(old.shape)


def _exchanged(old: Array, value: Array) -> Array:
    del old
    return value


def _compared_first(old: Array, value: Array, compare: Array) -> Array:
    return np.where(old == compare, value, old)


def _wide_pair(old: Array, value: Array) -> tuple[Array, Array]:
    wide = old.dtype if old.dtype.kind == "i" else np.dtype(np.float64)
    return old.astype(wide), value.astype(wide)


def _compare(record: OpRecord, inputs: Sequence[Array | float]) -> Array:
    dtypes = {each.dtype for each in inputs if isinstance(each, np.ndarray)}
    if len(inputs) != 2 or len(dtypes) != 1 or record.dtype != "bool":
        raise ValueError(f"it compares {len(inputs)} operands of {len(dtypes)} types")
    (dtype,) = dtypes
    # float64 holds every element of a smaller type exactly, also those that numpy cannot compare.
    wide = dtype if dtype.kind in "iub" else np.dtype(np.float64)
    return COMPARISONS[record.name](*(_widened(each, dtype, wide) for each in inputs))


def _where(record: OpRecord, inputs: Sequence[Array | float]) -> Array:
    dtype = NUMPY[record.dtype]
    if len(inputs) != 3 or not isinstance(inputs[0], np.ndarray) or inputs[0].dtype != np.bool_:
        raise ValueError("it takes a block of bools and two choices")
    mask, *choices = inputs
    for choice in choices:
        if isinstance(choice, np.ndarray) and choice.dtype != dtype:
            raise ValueError(f"it chooses {choice.dtype}, its result is {record.dtype}")
    yes, no = (np.broadcast_to(_widened(each, dtype, dtype), record.shape) for each in choices)
    result = np.array(no)
    np.copyto(result, yes, where=np.broadcast_to(np.asarray(mask), record.shape))
    return result


def _arange(record: OpRecord, inputs: Sequence[Array | float]) -> Array:
    if len(inputs) != 2 or any(isinstance(each, np.ndarray) for each in inputs):
        raise ValueError("it takes two numbers")
    first, end = (int(each) for each in inputs)
    return np.array(range(first, end), np.float64).astype(NUMPY[record.dtype])


def _sum_type(x: Array) -> np.dtype[Any]:
    # A sum of bytes has the type int32 in the kernel language, since it would overflow at once.
    widens = x.dtype.kind in "iub" and x.dtype.itemsize == 1
    return np.dtype(np.int32) if widens else x.dtype


def _running_sum(record: OpRecord, inputs: Sequence[Array | float]) -> Array:
    (x,) = _arrays(inputs, 1)
    dtype = _sum_type(x)
    wide = np.dtype(np.float64) if is_float(record.dtype) else dtype
    _check_axis(x, record.axis)
    return _in_type(np.add.accumulate(x.astype(wide), axis=record.axis or 0), dtype)


def _position(record: OpRecord, inputs: Sequence[Array | float]) -> Array:
    (x,) = _arrays(inputs, 1)
    _check_axis(x, record.axis)
    plain = x if x.dtype.kind in "iub" else x.astype(np.float64)
    # The record has no keepdims: the number of axes of the result shows it.
    keep = len(record.shape) == x.ndim
    positions = POSITIONS[record.name](plain, axis=record.axis, keepdims=keep)
    return np.asarray(positions).astype(np.int32)


def _reduce(record: OpRecord, inputs: Sequence[Array | float]) -> Array:
    (x,) = _arrays(inputs, 1)
    dtype = _sum_type(x) if record.name == "sum" else x.dtype
    wide = np.dtype(np.float64) if is_float(record.dtype) else dtype
    _check_axis(x, record.axis)
    # The record has no keepdims: the number of axes of the result shows it.
    keep = len(record.shape) == x.ndim
    exact = REDUCTIONS[record.name](x.astype(wide), axis=record.axis, keepdims=keep)
    return _in_type(np.asarray(exact), dtype)


def _softmax(record: OpRecord, inputs: Sequence[Array | float]) -> Array:
    (x,) = _arrays(inputs, 1)
    axis = -1 if record.axis is None else record.axis
    _check_axis(x, axis)
    if x.dtype != NUMPY[record.dtype]:
        raise ValueError(f"its operand is {x.dtype}, its result {record.dtype}")
    weights = np.exp(x.astype(np.float64) - np.amax(x, axis=axis, keepdims=True).astype(np.float64))
    return _narrowed(weights / weights.sum(axis=axis, keepdims=True), record.dtype)


def _transpose(_: OpRecord, inputs: Sequence[Array | float]) -> Array:
    return _arrays(inputs, 1)[0].transpose()


def _cat(_: OpRecord, inputs: Sequence[Array | float]) -> Array:
    arrays = _arrays(inputs, 1, len(inputs))
    if len({array.dtype for array in arrays}) > 1:
        raise ValueError(
            f"it joins values of types {', '.join(sorted({str(array.dtype) for array in arrays}))}"
        )
    return np.concatenate([array.reshape(-1) for array in arrays])


def _full(record: OpRecord, inputs: Sequence[Array | float]) -> Array:
    if len(inputs) != 1 or isinstance(inputs[0], np.ndarray):
        raise ValueError("it takes one number")
    return _in_type(np.full(record.shape, inputs[0], np.float64), NUMPY[record.dtype])


_FUNCTIONS: dict[tuple[str, str], Callable[[OpRecord, Sequence[Array | float]], Array]] = {
    ("pe_dma", "gather"): _gather,
    ("pe_fetch_store", "store"): _round,
    ("pe_gemm", "gemm"): _gemm,
    ("pe_math", "softmax"): _softmax,
    ("pe_math", "trans"): _transpose,
    ("pe_math", "cat"): _cat,
    ("pe_math", "cast"): _round,
    ("pe_math", "bitcast"): _same_bits,
    ("pe_math", "full"): _full,
    ("pe_math", "arange"): _arange,
    ("pe_math", "where"): _where,
    ("pe_math", "cumsum"): _running_sum,
}


_MEMORIES = ("hbm_ctrl", "sram")
_ATOMICS: dict[str, tuple[int, str | Callable[..., Array]]] = {
    "atomic add": (2, "add"),
    "atomic max": (2, "maximum"),
    "atomic min": (2, "minimum"),
    "atomic umax": (2, np.maximum),
    "atomic umin": (2, np.minimum),
    "atomic and": (2, np.bitwise_and),
    "atomic or": (2, np.bitwise_or),
    "atomic xor": (2, np.bitwise_xor),
    "atomic xchg": (2, _exchanged),
    "atomic cas": (3, _compared_first),
}
"""The number of inputs of each operation of a memory, and its function: of elements, by its name,
or of their bits.
"""


_KINDS: tuple[
    tuple[
        tuple[str, ...],
        Container[str],
        Callable[[OpRecord, Sequence[Array | float]], Array],
    ],
    ...,
] = (
    (_MEMORIES, _ATOMICS, _atomic),
    (("pe_math",), ELEMENTWISE, _elementwise),
    (("pe_math",), COMPARISONS, _compare),
    (("pe_math",), REDUCTIONS, _reduce),
    (("pe_math",), POSITIONS, _position),
)
"""Engines, names of their operations, and the function of these."""


def _arrays(inputs: Sequence[Array | float], least: int, most: int = 0) -> list[Array]:
    arrays = [each for each in inputs if isinstance(each, np.ndarray)]
    if len(arrays) != len(inputs):
        raise ValueError("it takes blocks of elements, not numbers")
    if not least <= len(arrays) <= max(least, most):
        raise ValueError(
            f"it takes {least if not most else f'{least} to {most}'} operands, not {len(arrays)}"
        )
    return arrays


def _check_axis(x: Array, axis: int | None) -> None:
    if axis is not None and not -x.ndim <= axis < x.ndim:
        raise ValueError(f"its operand of shape {x.shape} has no axis {axis}")


def _widened(
    operand: Array | float, dtype: np.dtype[np.generic], wide: np.dtype[np.generic]
) -> Array:
    if isinstance(operand, np.ndarray):
        return operand.astype(wide)
    # As in the kernel language, a number takes the type of the elements beside it first.
    return _in_type(np.asarray(operand, np.float64), dtype).astype(wide)


def _narrowed(exact: Array, dtype: str) -> Array:
    # The engine rounds to float32 first, except where the elements have more digits.
    if is_float(dtype) and dtype != "f64":
        exact = exact.astype(np.float32)
    return _in_type(exact, NUMPY[dtype])


def _in_type(x: Array, dtype: np.dtype[np.generic]) -> Array:
    """`x` in a type, where floating-point types of 8 bits saturate."""
    most = SATURATED.get(dtype)
    if most is not None:
        # NaN is not greater than anything, and stays.
        x = x.astype(np.float64)
        x = np.where(np.abs(x) > most, np.copysign(most, x), x)
    return x.astype(dtype)


def _converted(x: Array, dtype: str) -> Array:
    """`x` rounded once to `dtype`.

    A fraction becomes an integer by truncation and saturation; NaN becomes 0.
    """
    target = NUMPY[dtype]
    if is_float(dtype):
        return _in_type(x, target)
    if target == np.bool_ or x.dtype.kind in "iub":
        return x.astype(target)
    limits = np.iinfo(target)
    wide = x.astype(np.float64)
    whole = np.where(np.isnan(wide), 0.0, np.trunc(wide))
    # The greatest int64 has no float64, so the bounds are compared before the conversion.
    low, high = whole <= float(limits.min), whole >= float(limits.max)
    result = np.where(low | high, 0.0, whole).astype(target)
    result[low], result[high] = limits.min, limits.max
    return result
