"""Masks of attention that a program gives: numbers added to scores, or bools for those that exist.

A query without any key has the result 0. So hidden scores are minus infinity, and the highest score
of a row is never below `LOWEST`: the exponentials of such a row are 0, not NaN.
"""

from dataclasses import dataclass

from runtime.language import tl

LOWEST = -3.4028234663852886e38
"""The least number of float32."""


@dataclass(frozen=True)
class ScoreMask:
    """An element for each query and key; `pointer` is that of the first ones. An element is a bool,
    or a number in the unit of scaled scores. Along an axis of stride 0 all are equal.
    """

    pointer: tl.Pointer
    strides: tuple[int, int]

    def moved(self, elements: int) -> "ScoreMask":
        """The mask of other queries and keys."""
        return ScoreMask(self.pointer + elements, self.strides)

    def load(self, first: tuple[int, int], shape: tuple[int, int], buffer: tl.Value) -> None:
        """Start to load the elements of `shape` queries and keys from the `first` ones on."""
        (row, column), (down, across) = first, self.strides
        part = self.part(shape, buffer)
        start = self.pointer + row * down + column * across
        tl.load_async(start, part.shape, (max(down, 1), max(across, 1)), out=part)

    def part(self, shape: tuple[int, int], buffer: tl.Value) -> tl.Value:
        """The elements that `load` writes: one row or column where all are equal."""
        rows, columns = (
            length if stride else 1 for length, stride in zip(shape, self.strides, strict=True)
        )
        return buffer[: rows * columns].reshape(rows, columns)


def masked(scores: tl.Value, mask: tl.Value, scale: float) -> tuple[tl.Value, float]:
    """Scores with a mask, in a chain, and the factor that they still take."""
    if mask.dtype == tl.int1:
        return tl.where(mask, scores, float("-inf")), scale
    added = mask if mask.dtype == scores.dtype else mask.to(scores.dtype)
    return tl.fma(scores, scale, added), 1.0
