"""The elements of the result of an operation on values, where the operands have elements."""

from collections.abc import Sequence

from runtime.core.dtypes import DType
from runtime.language.operations import compute
from runtime.language.value import Array, Value


def result_elements(
    name: str,
    operands: Sequence[Value | float],
    dtype: DType,
    *,
    axis: int | None = None,
    keep_dims: bool = False,
    shape: Sequence[int] | None = None,
) -> Array | None:
    """`compute` of the elements of values; None if one has none, as in a run without data."""
    arrays = [each.data if isinstance(each, Value) else each for each in operands]
    known = [each for each in arrays if each is not None]
    if len(known) < len(arrays):
        return None
    return compute(name, known, dtype, axis=axis, keep_dims=keep_dims, shape=shape)
