"""Kernels on whole rows whose results depend on all elements before: running sums and products."""

from runtime.core.dtypes import DType
from runtime.device.kernels.conversions import in_type, write_over
from runtime.device.kernels.selection import RowShape, row_blocks
from runtime.language import tl
from runtime.language.value import Pointer


def running_sums(
    part: tuple[int, int], shape: RowShape, dtype: DType, source: Pointer, out: Pointer
) -> None:
    """Kernel: the sums of each element and all before it in its row, computed in `dtype`."""
    columns = shape.columns
    for row, rows in row_blocks(part, shape.height):
        with tl.scratch():
            values = in_type(tl.load(source + row * columns, (rows, columns)), dtype)
            tl.store(out + row * columns, in_type(tl.cumsum(values, 1), out.dtype))


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
            values = in_type(tl.load(source + row * columns, (rows, columns)), dtype)
            following = tl.empty((rows, columns), dtype)
            distance = 1
            while distance < columns:
                first, rest = slice(distance), slice(distance, columns)
                write_over(following[:, first], values[:, first])
                before = values[:, : columns - distance]
                tl.fused(tl.mul, values[:, rest], before, out=following[:, rest])
                values, following = following, values
                distance *= 2
            tl.store(out + row * columns, in_type(values, out.dtype))
