"""The kernel that resamples an axis: each row of the result is a sum of a few rows of the source
with weights, the same ones in each plane.

The rows and their order are arguments of the launch. The result is stored transposed, so the next
launch has the next axis as rows: after one for each axis, the axes are in their order again.
"""

from collections.abc import Sequence
from typing import NamedTuple

from runtime.core.dtypes import DType
from runtime.device.kernels.conversions import in_type
from runtime.language import tl
from runtime.language.value import Pointer, Value

_AT_ONCE = 4
"""Lists of rows that are loaded beside each other."""


class ResampledPiece(NamedTuple):
    """Part of the result that a PE computes at once: rows `span` of `planes` planes, from `plane`
    on.
    """

    plane: int
    planes: int
    span: tuple[int, int]


class ResampledAxis(NamedTuple):
    """Planes of `length` rows of `width` elements, of which `rows` make those of the result: a
    tuple for each summand, which has a number for each row of the result.
    """

    length: int
    width: int
    rows: tuple[tuple[int, ...], ...]

    @property
    def results(self) -> int:
        """The rows of the result."""
        return len(self.rows[0])


def moved_rows(
    pieces: Sequence[ResampledPiece], axis: ResampledAxis, source: Pointer, out: Pointer
) -> None:
    """Kernel: the rows of the first list, bit by bit."""
    for piece in pieces:
        with tl.scratch():
            _store_transposed(piece, axis, _loading(piece, axis, 0, source).wait(), out)


def weighted_rows(
    pieces: Sequence[ResampledPiece],
    axis: ResampledAxis,
    wide: DType,
    source: Pointer,
    weights: Pointer,
    out: Pointer,
) -> None:
    """Kernel: sums of rows, each times its weight, in the type `wide`. `weights` has a row for each
    summand; one whose weight is 0 is left out, also if its elements are infinite.
    """
    for piece in pieces:
        with tl.scratch():
            first, last = piece.span
            shape = (piece.planes, last - first, axis.width)
            total = tl.zeros(shape, wide)
            for start in range(0, len(axis.rows), _AT_ONCE):
                numbers = range(start, min(start + _AT_ONCE, len(axis.rows)))
                with tl.scratch():
                    factors = [
                        tl.load_async(weights + number * axis.results + first, (last - first, 1))
                        for number in numbers
                    ]
                    pending = [_loading(piece, axis, number, source) for number in numbers]
                    for factor, rows in zip(factors, pending, strict=True):
                        given = rows.wait().reshape(*shape)
                        tl.fused(_added, total, given, factor.wait(), out=total)
            matrix = total.reshape(piece.planes * (last - first), axis.width)
            _store_transposed(piece, axis, in_type(matrix, out.dtype), out)


def _added(total: Value, rows: Value, weight: Value) -> Value:
    wide = in_type(rows, total.dtype)
    return total + tl.where(weight != 0, wide * weight, 0.0)


def _loading(
    piece: ResampledPiece, axis: ResampledAxis, number: int, source: Pointer
) -> tl.PendingValue:
    """Start to load the rows of a list for a piece, plane by plane."""
    own = axis.rows[number][slice(*piece.span)]
    planes = range(piece.planes)
    rows = [plane * axis.length + row for plane in planes for row in own]
    start = source + piece.plane * axis.length * axis.width
    return tl.gather_async(start, rows, axis.width)


def _store_transposed(
    piece: ResampledPiece, axis: ResampledAxis, matrix: Value, out: Pointer
) -> None:
    first, last = piece.span
    start = out + piece.plane * axis.width * axis.results + first
    turned = tl.trans(matrix).reshape(axis.width, piece.planes, last - first)
    tl.store(start, turned, (axis.results, axis.width * axis.results, 1))
