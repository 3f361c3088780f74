"""Kernels on whole rows whose results depend on all elements before: running sums and products."""

from runtime.core.dtypes import DType
from runtime.device.kernels.selection import RowShape, row_blocks
from runtime.language import tl
from runtime.language.value import Pointer, Value


def running_sums(
    part: tuple[int, int], shape: RowShape, dtype: DType, source: Pointer, out: Pointer
) -> None:
    """Kernel: the sums of each element and all before it in its row, computed in `dtype`."""
    columns = shape.columns
    for row, rows in row_blocks(part, shape.height):
        with tl.scratch():
            values = _in(tl.load(source + row * columns, (rows, columns)), dtype)
            tl.store(out + row * columns, _in(tl.cumsum(values, 1), out.dtype))


def running_products(
    part: tuple[int, int], shape: RowShape, dtype: DType, source: Pointer, out: Pointer
) -> None:
    """Kernel: the products of each element and all before it in its row, computed in `dtype`: in
    step i an element is multiplied by the one 2^i before it (W. D. Hillis, G. L. Steele, "Data
    parallel algorithms", 1986).
    """
    columns = shape.columns
    for row, rows in row_blocks(part, shape.height):
        with tl.scratch():
            values = _in(tl.load(source + row * columns, (rows, columns)), dtype)
            following = tl.empty((rows, columns), dtype)
            distance = 1
            while distance < columns:
                first, rest = slice(distance), slice(distance, columns)
                tl.fused(_same, values[:, first], out=following[:, first])
                before = values[:, : columns - distance]
                tl.fused(tl.mul, values[:, rest], before, out=following[:, rest])
                values, following = following, values
                distance *= 2
            tl.store(out + row * columns, _in(values, out.dtype))


def _same(value: Value) -> Value:
    return value * 1


def _in(value: Value, dtype: DType) -> Value:
    return value if value.dtype == dtype else value.to(dtype)
