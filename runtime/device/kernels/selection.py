"""Kernels on whole rows that select elements: greatest ones, their columns."""

from typing import NamedTuple

from runtime.device.kernels.conversions import write_over
from runtime.language import tl
from runtime.language.value import Pointer


class RowShape(NamedTuple):
    """Rows of `columns` elements, of which `height` are a block."""

    height: int
    columns: int


def row_blocks(part: tuple[int, int], height: int) -> list[tuple[int, int]]:
    """The first row of each block of rows [first, last), and how many it has."""
    first, last = part
    return [(row, min(height, last - row)) for row in range(first, last, height)]


def greatest(  # noqa: PLR0917 - the arguments of a launch are positional
    part: tuple[int, int],
    shape: RowShape,
    count: int,
    bounds: tuple[float, float] | None,
    largest: bool,  # noqa: FBT001 - see above
    source: Pointer,
    indices: Pointer,
) -> None:
    """Kernel: the columns of the `count` greatest or least elements of each row [first, last), in
    order. An element that is found becomes the first one of `bounds`, and no other one is beyond
    the second one; for one element they are not needed.
    """
    columns = shape.columns
    find, nearest = (tl.argmax, tl.maximum) if largest else (tl.argmin, tl.minimum)
    for row, rows in row_blocks(part, shape.height):
        with tl.scratch():
            left = tl.load(source + row * columns, (rows, columns))
            if bounds is not None:
                left = nearest(left, bounds[1])
            numbers = tl.arange(0, columns)[None, :]
            for number in range(count):
                with tl.scratch():
                    column = find(left, 1, keep_dims=True)
                    tl.store(indices + row * count + number, column.to(tl.int64), (count, 1))
                    if bounds is not None and number + 1 < count:
                        rest = tl.where(numbers == column, bounds[0], left)
                        write_over(left, rest)
