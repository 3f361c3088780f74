"""The kernel of the products of a batch: those of one PE, matrix by matrix."""

from collections.abc import Sequence
from typing import NamedTuple

from runtime.language.value import Pointer
from runtime.torch.products.product_kernel import ProductTask, ResultMatrix, multiply
from runtime.torch.products.product_operands import OperandPiece, ProductOperand


class BatchOperand(NamedTuple):
    """The matrices of an operand: the first one, and the elements from one to the next."""

    first: ProductOperand
    distance: int

    def matrix(self, number: int) -> ProductOperand:
        """One of the matrices."""
        piece = self.first.pieces[0]
        moved = OperandPiece(piece.span, piece.pointer + number * self.distance, piece.pitch)
        return ProductOperand((moved,), self.first.stored_in_rows, self.first.used_in_rows)


class BatchTask(NamedTuple):
    """A block of the result of matrix `number`, and the sums of a divided depth, if it is."""

    number: int
    task: ProductTask
    sums: ResultMatrix | None


def multiply_batch(
    tasks: Sequence[BatchTask], a: BatchOperand, b: BatchOperand, bias: ProductOperand | None
) -> None:
    """Kernel: blocks of the results `a @ b + bias`."""
    for number, task, sums in tasks:
        multiply([task], a.matrix(number), b.matrix(number), sums, bias)


def first_matrix(
    pointer: Pointer, shape: tuple[int, int], pitch: int, *, is_turned: bool, used_in_rows: bool
) -> ProductOperand:
    """A matrix whose memory has `shape` and a pitch, transposed to the product if it `is_turned`.

    With `used_in_rows` it is the left operand, of which the rows are those of the result.
    """
    in_rows = used_in_rows != is_turned
    whole = OperandPiece((0, shape[0] if in_rows else shape[1]), pointer, pitch)
    return ProductOperand((whole,), in_rows, used_in_rows)
