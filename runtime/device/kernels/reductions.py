"""The shipped kernel of reductions: a PE reduces blocks of a tensor and combines their results in
the memory of the target.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runtime.core.dtypes import DType
from runtime.device.kernels.conversions import in_type
from runtime.language import tl
from runtime.language.context import running_kernel
from runtime.language.running import MathOptions
from runtime.language.value import Pointer, Value

_COMBINED = {"sum": "add", "max": "maximum", "min": "minimum"}


@dataclass(frozen=True)
class Piece:
    """`outer` x `length` x `inner` elements, which are reduced along the second axis.

    `source` and `target` are the starts in elements; `outer_step` and `step` are the strides of the
    first two axes of the source. The results are contiguous.
    """

    source: int
    target: int
    outer: int
    length: int
    inner: int
    outer_step: int
    step: int


@dataclass(frozen=True)
class ReducedBlock:
    """A matrix of a piece: the starts in elements, its shape, its row pitch, the axis that is
    reduced; `first` is the first block of its results.
    """

    source: int
    target: int
    shape: tuple[int, int]
    pitch: int
    axis: int
    first: bool


def reduce_pieces(
    name: str,
    dtype: DType,
    pieces: Sequence[Piece],
    most: int,
    source: Pointer,
    target: Pointer,
) -> None:
    """Kernel: reduce each piece with `name`, in blocks of at most `most` elements. Elements are
    converted to `dtype` before, which is the type of the target.
    """
    for piece in pieces:
        for block in blocks_of(piece, most):
            with tl.scratch():
                strides = (block.pitch, 1) if block.shape[0] > 1 else None
                loaded = tl.load(source + block.source, block.shape, strides)
                result = _reduced(name, in_type(loaded, dtype), block.axis)
                address = target + block.target
                if not block.first:
                    before = tl.load(address, result.shape)
                    result = running_kernel().math(_COMBINED[name], (before, result))
                tl.store(address, result)


def blocks_of(piece: Piece, most: int) -> Iterator[ReducedBlock]:
    """The matrices of a piece, of at most `most` elements, those of one result in sequence."""
    if piece.inner == 1:
        width = min(piece.length, most)
        height = max(1, min(piece.outer, most // width))
        for row in range(0, piece.outer, height):
            for column in range(0, piece.length, width):
                yield ReducedBlock(
                    source=piece.source + row * piece.outer_step + column,
                    target=piece.target + row,
                    shape=(min(height, piece.outer - row), min(width, piece.length - column)),
                    pitch=piece.outer_step,
                    axis=1,
                    first=column == 0,
                )
        return
    width = min(piece.inner, most)
    height = max(1, min(piece.length, most // width))
    for outer in range(piece.outer):
        for column in range(0, piece.inner, width):
            for row in range(0, piece.length, height):
                yield ReducedBlock(
                    source=piece.source + outer * piece.outer_step + row * piece.step + column,
                    target=piece.target + outer * piece.inner + column,
                    shape=(min(height, piece.length - row), min(width, piece.inner - column)),
                    pitch=piece.step,
                    axis=0,
                    first=row == 0,
                )


def _reduced(name: str, value: Value, axis: int) -> Value:
    if value.shape[axis] == 1:
        # No operation, but another shape: the slice leaves the axis out.
        return value
    return running_kernel().math(name, (value,), MathOptions(axis=axis, keep_dims=True))
