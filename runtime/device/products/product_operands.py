"""The matrices of a product as a PE addresses them: pieces of memory with a pitch.

A product sums over one axis of each operand, its *depth*; the other axis is free and becomes an
axis of the result. An operand is a list of pieces along its free axis, each with the whole depth,
so that a panel of any depth is one strided block. A flat tensor, whose virtual range is its
row-major order, is one piece.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul
from typing import NamedTuple

from runtime.device.kernels.products import OperandPiece, ProductOperand
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.language.value import Pointer
from runtime.model.blocked_layout import BlockedLayout
from runtime.model.placement import Span


@dataclass(frozen=True)
class MatrixPart:
    """Rows and columns of a matrix in row-major order at `offset` elements, on the PEs `pes`.

    Rows are `pitch` elements apart. Of replicas, every holder is in `pes`.
    """

    rows: Span
    columns: Span
    offset: int
    pitch: int
    pes: tuple[tuple[int, int], ...]


class MatrixOrder(NamedTuple):
    """Matrices with neighbours in memory along their rows, or along their columns if `is_turned`,
    and the distance between rows or columns.
    """

    pitch: int
    is_turned: bool


def parts_of(tensor: StoredTensor, shape: Sequence[int]) -> tuple[MatrixPart, ...] | None:
    """The shards of a tensor as parts of a matrix with as many elements, in virtual order.

    `shape` is that of the tensor with all axes but the last one folded, or with an axis of length 1
    before or after the only one. A tensor with a layout has a part for each tile. None where a
    shard is no block of rows and columns.
    """
    holders: dict[int, list[tuple[int, int]]] = {}
    spans: dict[int, tuple[Span, Span]] = {}
    for shard in tensor.shards:
        if not shard.spec.nbytes:
            continue
        folded = _folded(tensor.shape, shard.spec.spans, shape)
        if folded is None:
            return None
        offset = shard.spec.offset_bytes // tensor.itemsize
        spans[offset] = folded
        holders.setdefault(offset, []).append((shard.spec.cube, shard.spec.pe))
    parts = [
        MatrixPart(
            rows=rows,
            columns=columns,
            offset=offset,
            pitch=columns[1] - columns[0],
            pes=tuple(holders[offset]),
        )
        for offset, (rows, columns) in sorted(spans.items())
    ]
    layout = tensor.layout
    return tuple(
        parts if layout is None else (tile for part in parts for tile in _tiles(part, layout))
    )


def product_operand(
    tensor: StoredTensor, shape: tuple[int, int], *, free_in_rows: bool, used_in_rows: bool
) -> ProductOperand | None:
    """The operand that a tensor is, or None where its depth is divided over PEs."""
    start = Pointer(tensor.address, tensor.dtype)
    if tensor.is_flat:
        whole = OperandPiece((0, shape[0] if free_in_rows else shape[1]), start, shape[1])
        return ProductOperand((whole,), free_in_rows, used_in_rows)
    parts = parts_of(tensor, shape)
    if parts is None:
        return None
    pieces = list[OperandPiece]()
    for part in parts:
        free, deep = (part.rows, part.columns) if free_in_rows else (part.columns, part.rows)
        if deep != (0, shape[1] if free_in_rows else shape[0]):
            return None
        pieces.append(OperandPiece(free, start + part.offset, part.pitch))
    pieces.sort(key=lambda piece: piece.span)
    return ProductOperand(tuple(pieces), free_in_rows, used_in_rows)


def _tiles(part: MatrixPart, layout: BlockedLayout) -> Iterator[MatrixPart]:
    (top, bottom), (left, right) = part.rows, part.columns
    positions = layout.positions((bottom - top, right - left))
    for row in range(top, bottom, layout.rows):
        for column in range(left, right, layout.columns):
            stop = min(column + layout.columns, right)
            yield MatrixPart(
                rows=(row, min(row + layout.rows, bottom)),
                columns=(column, stop),
                offset=part.offset + int(positions[row - top, column - left]),
                pitch=stop - column,
                pes=part.pes,
            )


def _range(shape: Sequence[int], spans: Sequence[Span]) -> int | None:
    """The position of a block's first element in row-major order; None if the block has gaps."""
    strides = [*accumulate(reversed(shape[1:]), mul, initial=1)][::-1]
    lengths = [stop - start for start, stop in spans]
    cut = next((axis for axis, length in enumerate(lengths) if length != 1), len(lengths))
    if any(lengths[axis] != shape[axis] for axis in range(cut + 1, len(shape))):
        return None
    return sum(start * stride for (start, _), stride in zip(spans, strides, strict=False))


def _folded(
    shape: Sequence[int], spans: Sequence[Span], matrix: Sequence[int]
) -> tuple[Span, Span] | None:
    """The rows and columns of a block of a tensor of `shape` in the matrix that it is folded to."""
    if len(shape) < 2:
        span = spans[0] if spans else (0, 1)
        return ((0, 1), span) if matrix[0] == 1 else (span, (0, 1))
    first = _range(shape[:-1], spans[:-1])
    if first is None:
        return None
    count = prod(stop - start for start, stop in spans[:-1])
    return (first, first + count), spans[-1]


def first_matrix(
    pointer: Pointer,
    shape: tuple[int, int],
    order: MatrixOrder,
    *,
    used_in_rows: bool = False,
) -> ProductOperand:
    """A matrix whose memory has `shape`.

    With `used_in_rows` it is the left operand, of which the rows are those of the result.
    """
    in_rows = used_in_rows != order.is_turned
    whole = OperandPiece((0, shape[0] if in_rows else shape[1]), pointer, order.pitch)
    return ProductOperand((whole,), in_rows, used_in_rows)
