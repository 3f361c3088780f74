"""Arithmetic of the host side: affine blocks stay affine, and masks stay boxes, where they are.

The scalar unit of the PE computes these numbers while it issues commands; see docs/model.md.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kernbench.triton.indices.element_types import LIMITS, array_type, type_name
from kernbench.triton.indices.index_values import Affine, Array, Box, IndexValue, Recipe
from kernbench.triton.indices.open_integers import of_open
from runtime.language.functions import ELEMENTWISE

_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def _quotient(a: Array, b: Array) -> Array:
    # Towards zero, as hardware divides.
    return (a - np.fmod(a, b)) // b


def _shifted_right(a: Array, b: Array) -> Array:
    return np.right_shift(a, b.astype(a.dtype))


def _high_product(a: Array, b: Array) -> Array:
    kind = a.dtype
    wide = [each.astype(object) % (1 << (8 * kind.itemsize)) for each in (a, b)]
    return ((wide[0] * wide[1]) >> (8 * kind.itemsize)).astype(kind)


def _inverse_root(a: Array) -> Array:
    return 1 / np.sqrt(a)


def _multiplied_and_added(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


def _clamped(x: Array, low: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


def _chosen(mask: Array, a: Array, b: Array) -> Array:
    return np.where(mask, a, b)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "quotient": _quotient,
    "remainder": np.fmod,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "shift_left": np.left_shift,
    "shift_right": _shifted_right,
    "high_product": _high_product,
    "abs": np.abs,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "rsqrt": _inverse_root,
    "floor": np.floor,
    "ceil": np.ceil,
    "sin": np.sin,
    "cos": np.cos,
    "fma": _multiplied_and_added,
    "clamp": _clamped,
    "where": _chosen,
    **{name: ELEMENTWISE[name].function for name in ("erf", "pow", "round", "tanh")},
    **_COMPARED,
}


def computed(name: str, dtype: Any, operands: tuple[IndexValue, ...], recipe: Recipe) -> IndexValue:
    """The result, of Triton's type `dtype`, of an operation on operands of one shape."""
    shape = operands[0].shape
    number = of_open(name, type_name(dtype), operands)
    if number is not None:
        return IndexValue.constant(dtype, number, shape)
    box = _box(name, operands)
    if box is not None:
        return IndexValue(dtype, shape, box=box, recipe=recipe)
    affine = _affine(name, dtype, operands)
    if affine is not None:
        return IndexValue(dtype, shape, affine=affine)
    if name == "where" and (chosen := operands[0].number) is not None:
        return operands[1] if chosen else operands[2]
    array = _evaluated(name, dtype, operands)
    if not shape:
        return IndexValue.constant(dtype, array.reshape(-1)[0].item())
    return IndexValue(dtype, shape, array=array, recipe=recipe)


def _box(name: str, operands: tuple[IndexValue, ...]) -> Box | None:
    if name in _COMPARED:
        return _compared_box(name, *operands)
    return _intersection(*operands) if name == "bitwise_and" else None


def _affine(name: str, dtype: Any, operands: tuple[IndexValue, ...]) -> Affine | None:
    if name in ("add", "sub", "mul"):
        return _combined(name, dtype, *operands)
    return _one_period(*operands) if name == "remainder" else None


def moved(pointer: IndexValue, offset: IndexValue, itemsize: int) -> IndexValue:
    """The addresses `offset` elements of `itemsize` bytes behind those of `pointer`."""
    if pointer.affine is not None and offset.affine is not None:
        (start, steps), (first, others) = pointer.affine, offset.affine
        affine = Affine(
            start + itemsize * first,
            tuple(a + itemsize * b for a, b in zip(steps, others, strict=True)),
        )
        return IndexValue(pointer.dtype, pointer.shape, affine=affine)
    array = pointer.array + itemsize * offset.array.astype(np.int64)
    return IndexValue(pointer.dtype, pointer.shape, array=array)


def converted(value: IndexValue, dtype: Any, recipe: Recipe) -> IndexValue:
    """The elements as those of another type: integers keep their low bits."""
    name = type_name(dtype)
    if value.affine is not None:
        start, steps = value.affine
        if name in LIMITS and not isinstance(start, float) and _fits(name, value):
            start = int(start) if isinstance(start, bool) else start
            return IndexValue(dtype, value.shape, affine=Affine(start, steps))
        if name == "pointer":
            return IndexValue(dtype, value.shape, affine=value.affine)
        if not any(steps):
            element = np.asarray(start).astype(array_type(name)).item()
            return IndexValue.constant(dtype, element, value.shape)
    with np.errstate(all="ignore"):
        array = value.array.astype(array_type(name))
    return IndexValue(dtype, value.shape, array=array, recipe=recipe)


def _fits(name: str, value: IndexValue) -> bool:
    assert value.affine is not None
    low, high = value.affine.extremes(value.shape)
    least, greatest = LIMITS[name]
    return least <= low and high <= greatest


def _evaluated(name: str, dtype: Any, operands: tuple[IndexValue, ...]) -> Array:
    kind = array_type(type_name(dtype))
    arrays = [each.array for each in operands]
    with np.errstate(all="ignore"):
        if kind.itemsize == 2 and kind.kind not in "iu":
            arrays = [each.astype(np.float32) for each in arrays]
        result = np.asarray(_FUNCTIONS[name](*arrays))
        if kind.kind == "b" and name not in _COMPARED:
            result = result != 0
        return result.astype(kind)


def _combined(name: str, dtype: Any, a: IndexValue, b: IndexValue) -> Affine | None:
    """The affine form of a sum, difference or product; None if it is none, or wraps round."""
    kind = type_name(dtype)
    if a.affine is None or b.affine is None or kind not in LIMITS:
        return None
    (first, steps), (second, others) = a.affine, b.affine
    if name == "mul":
        if any(steps) and any(others):
            return None
        factor, (start, along) = (first, b.affine) if any(others) else (second, a.affine)
        if any(along):
            factor = int(factor)
        affine = Affine(start * factor, tuple(factor * each for each in along))
    else:
        sign = 1 if name == "add" else -1
        affine = Affine(
            first + sign * second, tuple(x + sign * y for x, y in zip(steps, others, strict=True))
        )
    low, high = affine.extremes(a.shape)
    least, greatest = LIMITS[kind]
    return affine if least <= low and high <= greatest else None


def _one_period(a: IndexValue, b: IndexValue) -> Affine | None:
    """The affine form of remainders that wrap round nowhere in a block."""
    period = b.number
    if a.affine is None or not isinstance(period, int) or period <= 0:
        return None
    low, high = a.affine.extremes(a.shape)
    if isinstance(low, float) or low < 0 or low // period != high // period:
        return None
    return Affine(a.affine.start - (low // period) * period, a.affine.steps)


def _compared_box(name: str, a: IndexValue, b: IndexValue) -> Box | None:
    """The box of a comparison between numbers that vary along one axis and a constant."""
    if a.affine is None or b.affine is None or not a.shape or name == "ne":
        return None
    if a.number is not None and b.number is None:
        name, a, b = _MIRRORED[name], b, a
    bound = b.number
    assert a.affine is not None
    (start, steps), whole = a.affine, tuple((0, each) for each in a.shape)
    long = [axis for axis, step in enumerate(steps) if step and a.shape[axis] > 1]
    if bound is None or len(long) != 1 or isinstance(bound, float) or name == "eq":
        return None
    (axis,) = long
    step, length = steps[axis], a.shape[axis]
    if step < 0:
        return None
    # The indices for which start + index x step is below, or not above, the bound.
    below = -(-(bound - start) // step)
    up_to = (bound - start) // step + 1
    spans = {"lt": (0, below), "le": (0, up_to), "gt": (up_to, length), "ge": (below, length)}
    first, stop = (int(min(max(each, 0), length)) for each in spans[name])
    return (*whole[:axis], (first, stop), *whole[axis + 1 :])


def _intersection(a: IndexValue, b: IndexValue) -> Box | None:
    whole = tuple((0, each) for each in a.shape)
    boxes = [
        each.box
        if each.box is not None
        else whole
        if each.affine is not None and each.number is True
        else None
        for each in (a, b)
    ]
    first, second = boxes
    if first is None or second is None:
        return None
    return tuple(
        (max(low, start), min(high, stop))
        for (low, high), (start, stop) in zip(first, second, strict=True)
    )
