"""The kernel of the products of a batch: those of one PE, matrix by matrix."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from runtime.device.kernels.products import ProductTask, ResultMatrix, multiply
from runtime.device.products.product_operands import OperandPiece, ProductOperand
from runtime.language import tl
from runtime.language.value import Pointer, Value
from runtime.model.placement import Span

_ROTATED_BYTES = 1 << 15
"""A shorter panel is loaded by one request: two take longer than they gain."""


@dataclass(frozen=True)
class RotatedOperand(ProductOperand):
    """An operand whose panels are loaded from a row in the middle on, `turn` (part, parts) of all:
    PEs that load from the same slices begin with different ones.
    """

    turn: tuple[int, int]

    def load(self, span: Span, depth: Span) -> Value:
        """Kernel: a panel in TCM as the product uses it, which may be a transposed view."""
        piece = self.pieces[0]
        free, deep = span[1] - span[0], depth[1] - depth[0]
        first = span[0] - piece.span[0]
        rows, columns = (free, deep) if self.stored_in_rows else (deep, free)
        part, parts = self.turn
        cut = part * rows // parts
        if not cut or rows * columns * piece.pointer.dtype.itemsize < _ROTATED_BYTES:
            return super().load(span, depth)
        top, left = (first, depth[0]) if self.stored_in_rows else (depth[0], first)
        start = piece.pointer + top * piece.pitch + left
        value = tl.empty((rows, columns), piece.pointer.dtype)
        for begin, end in ((cut, rows), (0, cut)):
            shape = (end - begin, columns)
            tl.load(start + begin * piece.pitch, shape, (piece.pitch, 1), out=value[begin:end])
        return value if self.stored_in_rows == self.used_in_rows else value.mT


class BatchOperand(NamedTuple):
    """The matrices of an operand: the first one, and the elements from one to the next."""

    first: ProductOperand
    distance: int

    def matrix(self, number: int, turn: tuple[int, int]) -> ProductOperand:
        """One of the matrices, whose panels are loaded from a part of their rows on."""
        piece = self.first.pieces[0]
        moved = OperandPiece(piece.span, piece.pointer + number * self.distance, piece.pitch)
        return RotatedOperand((moved,), self.first.stored_in_rows, self.first.used_in_rows, turn)


class BatchTask(NamedTuple):
    """A block of the result of matrix `number`, the sums of a divided depth, if it is, and the
    parts of the rows of both operands with which the loads begin.
    """

    number: int
    task: ProductTask
    sums: ResultMatrix | None
    turns: tuple[tuple[int, int], tuple[int, int]]


def multiply_batch(
    tasks: Sequence[BatchTask], a: BatchOperand, b: BatchOperand, bias: ProductOperand | None
) -> None:
    """Kernel: blocks of the results `a @ b + bias`."""
    for number, task, sums, (of_a, of_b) in tasks:
        multiply([task], a.matrix(number, of_a), b.matrix(number, of_b), sums, bias)


def first_matrix(
    pointer: Pointer, shape: tuple[int, int], pitch: int, *, is_turned: bool, used_in_rows: bool
) -> ProductOperand:
    """A matrix whose memory has `shape` and a pitch, transposed to the product if it `is_turned`.

    With `used_in_rows` it is the left operand, of which the rows are those of the result.
    """
    in_rows = used_in_rows != is_turned
    whole = OperandPiece((0, shape[0] if in_rows else shape[1]), pointer, pitch)
    return ProductOperand((whole,), in_rows, used_in_rows)
