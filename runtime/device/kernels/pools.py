"""The kernels of pools by maxima and by means, and of their gradients.

A PE loads whole planes, or strips of rows, and goes through the places of a window: the elements of
all windows at one place are a strided view of the block, which one chain of the vector engine
combines with the results. So the elements of a window are combined row by row, in one order. In a
gradient the views are those of the result, to which the gradients of the windows are added.
"""

from collections.abc import Sequence
from functools import partial

from runtime.core.dtypes import DType
from runtime.device.kernels.conversions import in_type
from runtime.device.kernels.pool_windows import (
    PoolPiece,
    PoolShape,
    Span,
    WindowAxis,
    loaded_planes,
    padded_block,
    windowed,
)
from runtime.language import tl
from runtime.language.value import Pointer, Value

_NONE = -(1 << 30)
"""The number of no element."""


def largest_of_windows(
    pieces: Sequence[PoolPiece], pool: PoolShape, source: Pointer, out: Pointer, indices: Pointer
) -> None:
    """Kernel: the greatest element of each window, and its number among those of all axes. Of equal
    ones it is the first, of several NaN the last.
    """
    rows, columns = pool
    for piece in pieces:
        with tl.scratch():
            elements = rows.elements(piece.span)
            shape = (piece.planes, piece.span[1] - piece.span[0], columns.total)
            # Numbers count from the first element of a window, until they are stored.
            best, number = tl.zeros(shape, source.dtype), tl.full(shape, _NONE, tl.int32)
            for plane, base in piece.sources:
                with tl.scratch():
                    block = _loaded_block(source, piece, plane, elements, pool)
                    for place in pool.places():
                        spans = (piece.span, elements), (0, columns.total)
                        view = windowed(block, pool, place, *spans)
                        if view is not None:
                            own = _part(view.rows, piece.span[0]), _part(view.columns, 0)
                            kept = best[:, own[0], own[1]], number[:, own[0], own[1]]
                            chain = partial(_larger, place=base + _first(pool, place))
                            tl.fused(chain, *kept, view.view, out=kept)
            start = _start(piece, rows.total, columns.total)
            tl.store(out + start, best)
            counted = tl.fused(_in_all, number, *_origins(pool, piece.span))
            tl.store(indices + start, in_type(counted, indices.dtype))


def _larger(best: Value, number: Value, value: Value, place: int) -> tuple[Value, Value]:
    """The greater elements, and the numbers of those."""
    is_larger = (value > best) | (value != value) | (number == _NONE)  # noqa: PLR0124 - NaN alone
    return tl.where(is_larger, value, best), tl.where(is_larger, place, number)


def gradient_of_largest(
    pieces: Sequence[PoolPiece],
    pool: PoolShape,
    wide: DType,
    gradient: Pointer,
    indices: Pointer,
    out: Pointer,
) -> None:
    """Kernel: for each element the sum, in the type `wide`, of the gradients of those windows whose
    index is its number.
    """
    for piece in pieces:
        with tl.scratch():
            windows = pool.rows.windows(piece.span)
            sums = _zeros(piece, pool, wide)
            for plane, base in piece.sources if windows[0] < windows[1] else ():
                with tl.scratch():
                    given = in_type(_of_windows(gradient, piece, plane, windows, pool), wide)
                    numbers = _of_windows(indices, piece, plane, windows, pool)
                    chosen = tl.fused(_in_windows, numbers, *_origins(pool, windows))
                    for place in pool.places():
                        spans = (windows, piece.span), (0, pool.columns.total)
                        view = windowed(sums, pool, place, *spans)
                        if view is not None:
                            own = _part(view.rows, windows[0]), _part(view.columns, 0)
                            operands = given[:, own[0], own[1]], chosen[:, own[0], own[1]]
                            chain = partial(_with_chosen, place=base + _first(pool, place))
                            tl.fused(chain, view.view, *operands, out=view.view)
            _store_planes(piece, pool, sums, out)


def _in_all(number: Value, row: Value, column: Value) -> Value:
    """Numbers of elements that count from those of all axes."""
    return number + row + column


def _in_windows(index: Value, row: Value, column: Value) -> Value:
    """Numbers of elements that count from the first ones of windows."""
    return in_type(index, tl.int32) - row - column


def _with_chosen(total: Value, gradient: Value, chosen: Value, place: int) -> Value:
    return total + tl.where(chosen == place, gradient, 0.0)


def means_of_windows(
    pieces: Sequence[PoolPiece],
    pool: PoolShape,
    wide: DType,
    counted: tuple[bool, float | None],
    source: Pointer,
    out: Pointer,
) -> None:
    """Kernel: the sum of each window, in the type `wide`, divided by its elements. `counted` is
    whether those of the margins are counted, and a divisor in place of their number.
    """
    rows, columns = pool
    for piece in pieces:
        with tl.scratch():
            elements, height = rows.elements(piece.span), piece.span[1] - piece.span[0]
            total = tl.zeros((piece.planes, height, columns.total), wide)
            for plane, _ in piece.sources:
                with tl.scratch():
                    block = _loaded_block(source, piece, plane, elements, pool)
                    for place in pool.places():
                        spans = (piece.span, elements), (0, columns.total)
                        view = windowed(block, pool, place, *spans)
                        if view is None:
                            continue
                        own = _part(view.rows, piece.span[0]), _part(view.columns, 0)
                        kept = total[:, own[0], own[1]]
                        tl.fused(_added, kept, view.view, out=kept)
            mean = _divided(total, pool, piece.span, piece.depth, counted)
            tl.store(out + _start(piece, rows.total, columns.total), in_type(mean, out.dtype))


def gradient_of_means(
    pieces: Sequence[PoolPiece],
    pool: PoolShape,
    wide: DType,
    counted: tuple[bool, float | None],
    gradient: Pointer,
    out: Pointer,
) -> None:
    """Kernel: for each element the sum of the gradients of its windows, each divided as in
    `means_of_windows`. The second number of a source is the length of its windows along the axis of
    the planes.
    """
    rows, columns = pool
    for piece in pieces:
        with tl.scratch():
            windows = rows.windows(piece.span)
            sums = _zeros(piece, pool, wide)
            for plane, depth in piece.sources if windows[0] < windows[1] else ():
                with tl.scratch():
                    given = in_type(_of_windows(gradient, piece, plane, windows, pool), wide)
                    shares = _divided(given, pool, windows, depth, counted)
                    for place in pool.places():
                        spans = (windows, piece.span), (0, columns.total)
                        view = windowed(sums, pool, place, *spans)
                        if view is not None:
                            own = _part(view.rows, windows[0]), _part(view.columns, 0)
                            share = shares[:, own[0], own[1]]
                            tl.fused(tl.add, view.view, share, out=view.view)
            _store_planes(piece, pool, sums, out)


def _added(total: Value, value: Value) -> Value:
    return total + in_type(value, total.dtype)


def _divided(
    total: Value, pool: PoolShape, span: Span, depth: int, counted: tuple[bool, float | None]
) -> Value:
    """Sums of windows, of the rows `span` of them, divided by their elements."""
    with_margins, divisor = counted
    if divisor is not None:
        return total / divisor
    high = _lengths(pool.rows, span, with_margins=with_margins)
    wide = _lengths(pool.columns, (0, pool.columns.total), with_margins=with_margins)

    def mean(total: Value, high: Value, wide: Value) -> Value:
        return total / (in_type(high, total.dtype) * in_type(wide, total.dtype) * float(depth))

    return tl.fused(mean, total, high[:, None], wide[None, :])


def _lengths(axis: WindowAxis, windows: Span, *, with_margins: bool) -> Value:
    """Elements of each window along an axis."""

    def length(number: Value) -> Value:
        start = number * axis.step - axis.margin
        end = tl.minimum(start + axis.size, axis.length + axis.margin * with_margins)
        return end - (start if with_margins else tl.maximum(start, 0))

    return tl.fused(length, tl.arange(*windows))


def _loaded_block(
    source: Pointer, piece: PoolPiece, plane: int, elements: Span, pool: PoolShape
) -> Value:
    height, pitch = elements[1] - elements[0], pool.rows.length * pool.columns.length
    block = padded_block(piece.planes, height, pool.columns.length, pool, source.dtype)
    part = plane, piece.planes, elements
    loaded_planes(source, part, pool.columns.length, pitch, block)
    return block


def _zeros(piece: PoolPiece, pool: PoolShape, wide: DType) -> Value:
    """A block for the sums of a piece, with the room of `padded_block`."""
    height = piece.span[1] - piece.span[0] + pool.rows.step - 1
    return tl.zeros((piece.planes, height, pool.columns.length + pool.columns.step - 1), wide)


def _of_windows(
    source: Pointer, piece: PoolPiece, plane: int, windows: Span, pool: PoolShape
) -> Value:
    """Load what each of the windows has."""
    (first, last), width = windows, pool.columns.total
    start = source + (plane * pool.rows.total + first) * width
    strides = (pool.rows.total * width, width, 1)
    return tl.load(start, (piece.planes, last - first, width), strides)


def _store_planes(piece: PoolPiece, pool: PoolShape, sums: Value, out: Pointer) -> None:
    part = sums[:, : piece.span[1] - piece.span[0], : pool.columns.length]
    start = _start(piece, pool.rows.length, pool.columns.length)
    tl.store(out + start, in_type(part, out.dtype))


def _start(piece: PoolPiece, height: int, width: int) -> int:
    """The first element of a piece in planes of height x width; several planes are whole."""
    return (piece.plane * height + piece.span[0]) * width


def _origins(pool: PoolShape, windows: Span) -> tuple[Value, Value]:
    """The number of the first element of windows, as a column and a row of summands."""
    rows = tl.arange(*windows) * (pool.rows.step * pool.columns.length)
    return rows[:, None], (tl.arange(0, pool.columns.total) * pool.columns.step)[None, :]


def _first(pool: PoolShape, place: Span) -> int:
    """The number of the element at a place of the first window of a plane."""
    return pool.rows.offset(place[0]) * pool.columns.length + pool.columns.offset(place[1])


def _part(span: Span, first: int) -> slice:
    return slice(span[0] - first, span[1] - first)
