"""The kernel that combines elements of a row with those of another row at given columns.

Each column of the result is compared with all given ones, on all PEs: no PE stores to an address
that depends on the elements.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from runtime.core.dtypes import DType
from runtime.device.kernels.bounds import IndexBounds
from runtime.device.kernels.conversions import in_type, write_over
from runtime.device.kernels.sorting import SortPiece
from runtime.language import tl
from runtime.language.value import Pointer, Value

_WIDEST = 512
"""Given elements that are compared at once: the registers of the vector engine hold them."""
How = Literal["last", "sum", "product", "max", "min"]


class Placing(NamedTuple):
    """`given` elements for each row of `columns` elements. Of several for a column the last one is
    placed, or their sum, product, greatest or least one is combined with the element before. The
    engine computes in `wide`, of which no number is less than `least`. The given columns are within
    `bounds`.
    """

    columns: int
    bounds: IndexBounds
    given: int
    how: How
    wide: DType
    least: float


class PlacedRows(NamedTuple):
    """The rows before, the column of each given element, the given elements or a number for all,
    the rows behind.
    """

    start: Pointer
    columns: Pointer
    given: Pointer | float
    out: Pointer


def placed_rows(pieces: Sequence[SortPiece], placing: Placing, tensors: PlacedRows) -> None:
    """Kernel: elements of rows, combined with those that are given for their columns."""
    for piece in pieces:
        with tl.scratch():
            width, pitch = piece.last - piece.first, placing.columns
            start, shape = piece.row * pitch + piece.first, (piece.rows, width)
            before = tl.load(tensors.start + start, shape, (pitch, 1))
            result = in_type(before, placing.wide).reshape(*shape, 1)
            at_once = max(1, _WIDEST // piece.rows)
            for first in range(0, placing.given, at_once):
                with tl.scratch():
                    span = first, min(first + at_once, placing.given)
                    _combine(result, piece, span, placing, tensors)
            last = in_type(result, tensors.out.dtype).reshape(*shape)
            tl.store(tensors.out + start, last, (pitch, 1))


def _combine(
    result: Value,
    piece: SortPiece,
    span: tuple[int, int],
    placing: Placing,
    tensors: PlacedRows,
) -> None:
    """Combine a part of the given elements with those of a piece."""
    (first, last), strides = span, (placing.given, 1)
    shape, start = (piece.rows, last - first), piece.row * placing.given + first
    columns = tl.load(tensors.columns + start, shape, strides)
    placing.bounds.check(columns)
    if isinstance(tensors.given, Pointer):
        given = in_type(tl.load(tensors.given + start, shape, strides), placing.wide)
    else:
        given = tl.full(shape, tensors.given, placing.wide)
    own = tl.arange(piece.first, piece.last)[None, :, None]
    columns = in_type(columns, tl.int32)
    if placing.how == "product":
        _multiply(result, own, columns, given)
        return
    chains = {"last": _last, "sum": _sum, "max": _greatest, "min": _least}
    operands = columns[:, None, :], given[:, None, :]
    numbers = tl.arange(0, last - first)[None, None, :]

    def chain(result: Value, own: Value, column: Value, given: Value, number: Value) -> Value:
        return chains[placing.how](result, own == column, given, number, placing)

    if result.numel == columns.numel * own.numel:
        # One given element for each row: the result is as wide as what is compared.
        write_over(result, tl.fused(chain, result, own, *operands, numbers))
    else:
        tl.fused(chain, result, own, *operands, numbers, out=result)


def _multiply(result: Value, own: Value, columns: Value, given: Value) -> None:
    """Multiply by all that is given for a column: the engine has no products of several elements,
    so the last half of the factors is multiplied onto the first until one is left.
    """
    # Halves of the first axis are apart in memory.
    places = own.reshape(1, 1, own.numel)
    factors = tl.fused(_factors, places, *(tl.trans(each)[:, :, None] for each in (columns, given)))
    left = factors.shape[0]
    while left > 1:
        half = left // 2
        tl.fused(tl.mul, factors[:half], factors[left - half : left], out=factors[:half])
        left -= half
    tl.fused(tl.mul, result, factors[:1].reshape(*result.shape), out=result)


def _factors(own: Value, column: Value, given: Value) -> Value:
    return tl.where(own == column, given, 1)


def _sum(result: Value, is_here: Value, given: Value, _: Value, placing: Placing) -> Value:
    del placing
    return result + tl.sum(tl.where(is_here, given, 0), 2, keep_dims=True)


def _greatest(result: Value, is_here: Value, given: Value, _: Value, placing: Placing) -> Value:
    del placing
    return tl.maximum(result, tl.max(tl.where(is_here, given, result), 2, keep_dims=True))


def _least(result: Value, is_here: Value, given: Value, _: Value, placing: Placing) -> Value:
    del placing
    return tl.minimum(result, tl.min(tl.where(is_here, given, result), 2, keep_dims=True))


def _last(result: Value, is_here: Value, given: Value, number: Value, placing: Placing) -> Value:
    last = tl.max(tl.where(is_here, number, -1), 2, keep_dims=True)
    element = tl.where(is_here & (number == last), given, placing.least)
    return tl.where(last >= 0, tl.max(element, 2, keep_dims=True), result)
