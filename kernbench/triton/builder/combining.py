"""Reductions and scans of Triton, with any function that combines elements.

Sums, maxima, minima and their positions are those of the vector engine. Any other function
combines the halves of a block, then the halves of the result, and so on: the order is a tree that
does not depend on the machine. A scan joins neighbouring scanned parts of 1, 2, 4, ... elements
(J. Sklansky, Conditional-sum addition logic, 1960).
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from kernbench.triton import triton_api
from kernbench.triton.builder.builder_arithmetic import operation, wrapped
from kernbench.triton.builder.builder_shapes import joined, part, with_shape
from kernbench.triton.builder.program import DeviceValue, Handle, running
from kernbench.triton.indices.element_types import type_name
from kernbench.triton.indices.index_values import IndexValue, Shape
from runtime.language.running import MathOptions

_language = triton_api.module("triton.language")
_standard = _language.standard
_REDUCTIONS: Mapping[str, str] = {
    "_sum_combine": "sum",
    "_elementwise_max": "max",
    "_elementwise_min": "min",
}
_POSITIONS: Mapping[str, tuple[str, str]] = {
    "_argmax_combine_tie_break_left": ("max", "argmax"),
    "_argmax_combine_tie_break_fast": ("max", "argmax"),
    "_argmin_combine_tie_break_left": ("min", "argmin"),
    "_argmin_combine_tie_break_fast": ("min", "argmin"),
}


def _standard_name(combine: Any, names: Mapping[str, Any]) -> Any:
    return next((kind for name, kind in names.items() if getattr(_standard, name) is combine), None)


def reduce(
    given: Any,
    axis: Any,
    combine_fn: Any,
    keep_dims: Any = False,  # noqa: FBT002
    **_: object,
) -> Any:
    """`tl.reduce`: one tensor, or a tuple of tensors."""
    axis, keep_dims = _plain(axis), bool(_plain(keep_dims))
    inputs = tuple(given) if isinstance(given, tuple | _language.tuple) else (given,)
    if axis is None:
        shape = (1,) * len(inputs[0].shape)
        flat = [_tensor(with_shape(each.handle, (_numel(each),)), each.dtype) for each in inputs]
        results = _reduced(flat, 0, combine_fn)
        if keep_dims:
            results = [_tensor(with_shape(each.handle, shape), each.dtype) for each in results]
    else:
        axis %= len(inputs[0].shape)
        results = _reduced(inputs, axis, combine_fn)
        if keep_dims:
            lengths = tuple(n if each != axis else 1 for each, n in enumerate(_shape(inputs[0])))
            results = [_tensor(with_shape(each.handle, lengths), each.dtype) for each in results]
    return results[0] if len(inputs) == 1 else tuple(results)


def _plain(value: Any) -> Any:
    return getattr(value, "value", value)


def _shape(tensor: Any) -> Shape:
    handle: Handle = tensor.handle
    return handle.shape


def _numel(tensor: Any) -> int:
    return int(_plain(tensor.numel))


def _tensor(handle: Handle, dtype: Any) -> Any:
    scalar = dtype.scalar
    shape = list(handle.shape)
    return _language.tensor(handle, _language.block_type(scalar, shape) if shape else scalar)


def _reduced(inputs: Sequence[Any], axis: int, combine_fn: Any) -> list[Any]:
    kind = _standard_name(combine_fn, _REDUCTIONS)
    if kind is not None and len(inputs) == 1:
        return [_engine_reduction(kind, inputs[0], axis)]
    pair = _standard_name(combine_fn, _POSITIONS)
    if pair is not None and len(inputs) == 2 and _counts(inputs[1].handle, axis):
        value, position = pair
        return [
            _engine_reduction(value, inputs[0], axis),
            _engine_reduction(position, inputs[0], axis, _language.int32),
        ]
    length = _shape(inputs[0])[axis]
    values = list(inputs)
    while length > 1:
        half = length // 2
        lower = [_part(each, axis, 0, half) for each in values]
        upper = [_part(each, axis, half, 2 * half) for each in values]
        values = _combined(combine_fn, lower, upper)
        length = half
    kept = tuple(n for each, n in enumerate(_shape(inputs[0])) if each != axis)
    return [_tensor(with_shape(each.handle, kept), each.dtype) for each in values]


def _engine_reduction(name: str, tensor: Any, axis: int, dtype: Any = None) -> Any:
    program, scalar = running(), dtype or tensor.dtype.scalar
    value = program.in_tcm(tensor.handle)
    block = value.block
    if block.shape[axis] != value.shape[axis]:
        block = program.whole(value)
    result = program.math(name, (block,), MathOptions(axis=axis))
    result = wrapped(program, result, type_name(scalar))
    shape = tuple(n for each, n in enumerate(value.shape) if each != axis)
    return _tensor(DeviceValue(scalar, result, shape), scalar)


def _counts(value: Handle, axis: int) -> bool:
    """Whether the elements are their own positions along an axis."""
    if not isinstance(value, IndexValue) or value.affine is None:
        return False
    start, steps = value.affine
    return start == 0 and all(
        step == (1 if each == axis else 0) or length == 1
        for each, (step, length) in enumerate(zip(steps, value.shape, strict=True))
    )


def _part(tensor: Any, axis: int, first: int, stop: int) -> Any:
    return _tensor(part(tensor.handle, axis, first, stop), tensor.dtype)


def _combined(combine_fn: Callable[..., Any], a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    result = combine_fn(*a, *b)
    return list(result) if isinstance(result, tuple | _language.tuple) else [result]


def associative_scan(
    given: Any,
    axis: Any,
    combine_fn: Any,
    reverse: Any = False,  # noqa: FBT002
    **_: object,
) -> Any:
    """`tl.associative_scan`: one tensor, or a tuple of tensors."""
    is_reversed = bool(_plain(reverse))
    inputs = tuple(given) if isinstance(given, tuple | _language.tuple) else (given,)
    along: int = int(_plain(axis)) % len(_shape(inputs[0]))
    if _standard_name(combine_fn, {"_sum_combine": "cumsum"}) and not is_reversed:
        tensor = inputs[0]
        program = running()
        block = program.whole(program.in_tcm(tensor.handle))
        result = program.math("cumsum", (block,), MathOptions(axis=along))
        scalar = tensor.dtype.scalar
        return _tensor(DeviceValue(scalar, wrapped(program, result, type_name(scalar))), scalar)
    shape = _shape(inputs[0])
    outer, inner = prod(shape[:along]), prod(shape[along + 1 :])
    length, distance, values = shape[along], 1, list(inputs)
    while distance < length:
        values = _scanned(
            values, (outer, length // (2 * distance), 2, distance, inner), combine_fn, is_reversed
        )
        distance *= 2
    values = [_tensor(with_shape(each.handle, shape), each.dtype) for each in values]
    return values[0] if len(inputs) == 1 else tuple(values)


def _scanned(
    values: Sequence[Any],
    shape: Shape,
    combine_fn: Any,
    is_reversed: bool,  # noqa: FBT001 - from a keyword of Triton
) -> list[Any]:
    """Pairs of scanned parts become one: the last element of the part before it is combined with
    each element of the other one.
    """
    pairs = [_tensor(with_shape(each.handle, shape), each.dtype) for each in values]
    before, behind = (1, 0) if is_reversed else (0, 1)
    kept = [_part(each, 2, before, before + 1) for each in pairs]
    last = 0 if is_reversed else shape[3] - 1
    ends = [_part(each, 3, last, last + 1) for each in kept]
    moved = _combined(combine_fn, ends, [_part(each, 2, behind, behind + 1) for each in pairs])
    return [
        _tensor(
            joined((new.handle, old.handle) if is_reversed else (old.handle, new.handle), 2),
            old.dtype,
        )
        for old, new in zip(kept, moved, strict=True)
    ]


def sort(x: Any, dim: Any = None, descending: Any = False, **_: object) -> Any:  # noqa: FBT002
    """`tl.sort` along the last axis: a bitonic network of minima and maxima (K. E. Batcher, Sorting
    networks and their applications, 1968).
    """
    del dim
    handle, is_descending = x.handle, bool(_plain(descending))
    shape = handle.shape
    length, rows = shape[-1], _numel(x) // shape[-1]
    block = 2
    while block <= length:
        handle = _merged(handle, rows, length, block, is_descending=is_descending)
        block *= 2
    return _tensor(with_shape(handle, shape), x.dtype)


def flip(x: Any, dim: Any = None) -> Any:
    """`tl.flip`: halves change places, then their halves, and so on."""
    handle = x.handle
    shape = handle.shape
    axis = len(shape) - 1 if _plain(dim) is None else int(_plain(dim))
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"tl.flip along axis {axis}: the value has {len(shape)} axes")
    axis %= len(shape)
    outer, length, inner = shape[:axis], shape[axis], shape[axis + 1 :]
    block = length
    while block > 1:
        pairs = with_shape(handle, (*outer, length // block, 2, block // 2, *inner))
        halves = [part(pairs, axis + 1, each, each + 1) for each in (1, 0)]
        handle = joined(halves, axis + 1)
        block //= 2
    return _tensor(with_shape(handle, shape), x.dtype)


def _merged(handle: Handle, rows: int, length: int, block: int, *, is_descending: bool) -> Handle:
    """Blocks whose halves rise and fall become sorted ones, which rise and fall in turns."""
    distance, blocks = block // 2, length // block
    while distance:
        inner = (block // (2 * distance), 2, distance)
        if blocks == 1:
            pairs, halves = with_shape(handle, (rows, *inner)), 2
        else:
            pairs, halves = with_shape(handle, (rows, blocks // 2, 2, *inner)), 4
        first, second = (part(pairs, halves, each, each + 1) for each in (0, 1))
        low, high = operation("minimum", first, second), operation("maximum", first, second)
        if blocks > 1:
            box = tuple((0, n) if axis != 2 else (1, 2) for axis, n in enumerate(first.shape))
            falls = IndexValue(_language.int1, first.shape, box=box)
            low, high = operation("where", falls, high, low), operation("where", falls, low, high)
        elif is_descending:
            low, high = high, low
        handle = joined((low, high), halves)
        distance //= 2
    return handle
