"""Values in another element type, and over other values."""

from runtime.core.dtypes import DType
from runtime.language import tl
from runtime.language.value import Value


def in_type(value: Value, dtype: DType) -> Value:
    """A value in an element type: itself, or a cast, which is a command of the vector engine."""
    return value if value.dtype == dtype else value.to(dtype)


def write_over(out: Value, value: Value) -> None:
    """Write the elements of a value over another one: the vector engine copies by a product."""
    tl.fused(_unchanged, value, out=out)


def _unchanged(value: Value) -> Value:
    return value * 1
