"""The kernel that sorts rows by counting: the place of an element is the number of those before it.

Every element of a row is compared with all others of the row, on all PEs. Equal elements are in the
order of their columns, so the order is that of a stable sort. Behind a barrier each PE finds, for
its places of the result, the element whose place it is. No PE stores to an address that depends on
the elements.
"""

from collections.abc import Sequence
from typing import NamedTuple

from runtime.language import tl
from runtime.language.value import Pointer, Value

WIDEST = 256
"""Elements that are compared with others at once: the registers of the vector engine hold them."""


class SortPiece(NamedTuple):
    """Elements [first, last) of `rows` rows from `row` on."""

    row: int
    rows: int
    first: int
    last: int


class SortOrder(NamedTuple):
    """The order of rows of `columns` elements: descending or not, whether elements may be NaN, and
    a number that no element is less than.
    """

    columns: int
    descending: bool
    has_nan: bool
    least: float


class SortTensors(NamedTuple):
    """The elements, the place of each one, the sorted elements, their columns."""

    source: Pointer
    places: Pointer
    elements: Pointer
    columns: Pointer


def sorted_rows(pieces: Sequence[SortPiece], order: SortOrder, tensors: SortTensors) -> None:
    """Kernel: the elements of rows in their order, and their columns."""
    for each in pieces:
        with tl.scratch():
            _place(each, order, tensors)
    tl.barrier()
    for each in pieces:
        with tl.scratch():
            _find(each, order, tensors)


def _place(piece: SortPiece, order: SortOrder, tensors: SortTensors) -> None:
    """Store the places of the elements of a piece."""
    own, numbers = (
        each[:, :, None] for each in _keys(tensors.source, piece, piece.first, piece.last, order)
    )
    count = tl.zeros(own.shape, tl.int32)
    for first in range(0, order.columns, WIDEST):
        with tl.scratch():
            keys = _keys(tensors.source, piece, first, first + WIDEST, order)
            others, columns = (each[:, None, :] for each in keys)

            def counted(
                count: Value, own: Value, number: Value, other: Value, column: Value
            ) -> Value:
                is_before = other > own if order.descending else other < own
                is_before |= (other == own) & (column < number)
                return count + tl.sum(is_before, 2, keep_dims=True)

            tl.fused(counted, count, own, numbers, others, columns, out=count)
    target = tensors.places + piece.row * order.columns + piece.first
    tl.store(target, count.reshape(piece.rows, piece.last - piece.first), (order.columns, 1))


def _find(piece: SortPiece, order: SortOrder, tensors: SortTensors) -> None:
    """Store the elements whose places are those of a piece."""
    width = piece.last - piece.first
    wanted = tl.arange(piece.first, piece.last)[None, :, None]
    columns = tl.zeros((piece.rows, width, 1), tl.int32)
    elements = tl.full((piece.rows, width, 1), order.least, tensors.source.dtype)
    for first in range(0, order.columns, WIDEST):
        with tl.scratch():
            last = min(first + WIDEST, order.columns)
            places, given = (
                _loaded(each, piece, first, last, order.columns)[:, None, :]
                for each in (tensors.places, tensors.source)
            )
            numbers = tl.arange(first, last)[None, None, :]

            def found(
                columns: Value, elements: Value, place: Value, number: Value, given: Value
            ) -> tuple[Value, Value]:
                is_here = place == wanted
                column = tl.sum(tl.where(is_here, number, 0), 2, keep_dims=True)
                element = tl.max(tl.where(is_here, given, order.least), 2, keep_dims=True)
                return columns + column, tl.maximum(elements, element)

            tl.fused(found, columns, elements, places, numbers, given, out=(columns, elements))
    start = piece.row * order.columns + piece.first
    shape, strides = (piece.rows, width), (order.columns, 1)
    tl.store(tensors.elements + start, elements.reshape(shape), strides)
    tl.store(tensors.columns + start, columns.to(tl.int64).reshape(shape), strides)


def _keys(
    source: Pointer, piece: SortPiece, first: int, last: int, order: SortOrder
) -> tuple[Value, Value]:
    """Elements of the rows of a piece, and their columns: two numbers that order them. NaN counts
    as infinity in a column behind all others, in front of them where the order is descending.
    """
    last = min(last, order.columns)
    elements = _loaded(source, piece, first, last, order.columns)
    columns = tl.zeros(elements.shape, tl.int32) + tl.arange(first, last)[None, :]
    if not order.has_nan:
        return elements, columns
    by = -order.columns if order.descending else order.columns

    def keyed(element: Value, column: Value) -> tuple[Value, Value]:
        is_nan = element != element  # noqa: PLR0124 - true of NaN alone
        return tl.where(is_nan, float("inf"), element), tl.where(is_nan, column + by, column)

    element, column = tl.fused(keyed, elements, columns)
    return element, column


def _loaded(source: Pointer, piece: SortPiece, first: int, last: int, columns: int) -> Value:
    start = source + piece.row * columns + first
    return tl.load(start, (piece.rows, last - first), (columns, 1))
