"""The index lists of `tl.gather`: rows of a matrix in memory, as a value in TCM or as integers."""

from operator import index
from typing import NamedTuple

from msgspec import Struct

from runtime.core.errors import PageFaultError
from runtime.language.memory_in_flight import UsedBlock
from runtime.language.shapes import checked_value
from runtime.language.value import Pointer, Shape, Value

_INTEGER_BYTES = 4
"""Bytes of an entry of a list of integers, which the PE_CPU writes as int32."""


class RowList(Struct, frozen=True):
    """Rows that the command `operation` names: a value of integers in TCM, or Python integers."""

    operation: str
    rows: Value | tuple[int, ...]

    def __len__(self) -> int:
        return self.rows.shape[0] if isinstance(self.rows, Value) else len(self.rows)

    @property
    def value(self) -> Value | None:
        """The list, if it is a value."""
        return self.rows if isinstance(self.rows, Value) else None

    @property
    def nbytes(self) -> int:
        """Bytes of the list."""
        return len(self) * _INTEGER_BYTES if self.value is None else self.value.nbytes

    def numbers(self) -> tuple[int, ...]:
        """The rows, counted from 0, as they are now.

        `ValueError` for a negative one, and for a value of a run without data.
        """
        rows = self.rows
        numbers = rows if isinstance(rows, tuple) else self._elements(rows)
        for entry, number in enumerate(numbers):
            if number < 0:
                raise ValueError(
                    f"{self.operation} of row {number}, entry {entry}: rows count from 0"
                )
        return numbers

    def fault(self, entry: int, error: PageFaultError) -> PageFaultError:
        """The page fault of a row, with its entry in the list."""
        return PageFaultError(
            error.kernel,
            error.coordinates,
            error.line,
            error.address,
            error.nbytes,
            f"row {self.numbers()[entry]}, entry {entry} of {len(self)}; {error.tensor}",
            error.program,
        )

    def _elements(self, rows: Value) -> tuple[int, ...]:
        if rows.data is None:
            raise ValueError(
                f"{self.operation} takes rows from a value in TCM, and a run with --no-data has no "
                "elements: pass the rows as a sequence of integers"
            )
        return tuple(rows.data.tolist())


class RowGather(NamedTuple):
    """Rows of a matrix in memory, each of `shape`; `strides` are the pitch of the rows and the
    strides of each.
    """

    pointer: Pointer
    rows: RowList
    shape: Shape
    strides: tuple[int, ...]

    @property
    def whole(self) -> Shape:
        """The shape of all rows."""
        return (len(self.rows), *self.shape)

    def blocks(self) -> list[UsedBlock]:
        """The block of each row, by the numbers that the list has now."""
        return row_blocks(self.pointer, self.rows.numbers(), self.shape, self.strides)


def checked_rows(rows: object, operation: str) -> RowList:
    """The index list that a kernel passes to `operation`.

    `TypeError` unless it is a value of integers with one axis or a sequence of integers.
    """
    if not isinstance(rows, Value):
        return RowList(operation, _integers(rows, operation))
    checked_value(rows, operation)
    if rows.dtype.numpy.kind not in "iu" or len(rows.shape) != 1:
        raise TypeError(
            f"{operation} takes rows as integers with one axis, "
            f"not {rows.dtype.name} of shape {rows.shape}"
        )
    return RowList(operation, rows)


def row_blocks(
    pointer: Pointer, numbers: tuple[int, ...], shape: Shape, strides: tuple[int, ...]
) -> list[UsedBlock]:
    """The blocks of rows; `strides` are the pitch and the strides of a row."""
    return [UsedBlock(pointer + number * strides[0], shape, strides[1:]) for number in numbers]


def _integers(rows: object, operation: str) -> tuple[int, ...]:
    try:
        # The protocol of sequences, not `Sequence`: an array of numpy is none.
        return tuple(index(row) for row in rows)  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType, reportUnknownArgumentType] - kernels are not type-checked
    except TypeError:
        given = f"{type(rows).__name__} {rows!r}"
        raise TypeError(
            f"{operation} takes rows as a value of integers or as a sequence of integers, "
            f"not {given}"
        ) from None
