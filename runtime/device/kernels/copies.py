"""The kernels of tensor methods: fill, copy with conversion, transposition, and copies of columns.

Every PE works on the parts that it gets as an argument, in pieces that fit its scratch.
"""

from runtime.core.dtypes import DType
from runtime.language import tl
from runtime.language.value import Pointer, Value

_LOW_BITS = 32


def fill(parts: tuple[tuple[Pointer, int], ...], value: float, piece: int) -> None:
    """Kernel: store `value` to all elements of every part (target, elements)."""
    longest = max(numel for _, numel in parts)
    with tl.scratch():
        # One block in TCM is stored as often as the parts need it, by several requests at a time.
        block = _constant(min(piece, longest), value, parts[0][0].dtype)
        stores = [
            tl.store_async(target + start, block[: min(piece, numel - start)])
            for target, numel in parts
            for start in range(0, numel, piece)
        ]
        for store in stores:
            tl.wait(store)


def _constant(numel: int, value: float, dtype: DType) -> Value:
    """A block with one value; of an integer beyond 2^53, which the engine does not take as a
    number, from its upper and its lower half.
    """
    if value == float(value) or value != value:  # noqa: PLR0124 - of the numbers, only nan differs
        return tl.full(numel, value, dtype)
    upper, lower = divmod(int(value), 1 << _LOW_BITS)
    return tl.full(numel, upper, dtype) * (1 << _LOW_BITS) + lower


def copy(parts: tuple[tuple[Pointer, Pointer, int], ...], piece: int) -> None:
    """Kernel: copy every part (source, target, elements), converted to the type of the target."""
    for source, target, numel in parts:
        for start in range(0, numel, piece):
            with tl.scratch():
                block = tl.load(source + start, min(piece, numel - start))
                same = block.dtype == target.dtype
                tl.store(target + start, block if same else block.to(target.dtype))


def transpose(
    source: Pointer, target: Pointer, shape: tuple[int, int], part: tuple[int, int], tile: int
) -> None:
    """Kernel: the rows [first, last) of the transposed matrix, which are columns of `source` of
    `shape`, in blocks of `tile` x `tile`.
    """
    (rows, columns), (first, last) = shape, part
    for column in range(first, last, tile):
        wide = min(tile, last - column)
        for row in range(0, rows, tile):
            with tl.scratch():
                high = min(tile, rows - row)
                block = tl.load(source + row * columns + column, (high, wide), (columns, 1))
                tl.store(target + column * rows + row, tl.trans(block), (rows, 1))


def copy_columns(
    source: Pointer,
    target: Pointer,
    columns: int,
    pitch: int,
    part: tuple[int, int],
    piece: int,
) -> None:
    """Kernel: copy the rows [first, last) of a matrix of `columns` into one with `pitch` columns,
    from the column that `target` points to, in blocks of `piece` elements.
    """
    first, last = part
    wide = min(columns, piece)
    high = max(1, piece // wide)
    for row in range(first, last, high):
        count = min(high, last - row)
        for column in range(0, columns, wide):
            with tl.scratch():
                shape = (count, min(wide, columns - column))
                block = tl.load(source + row * columns + column, shape, (columns, 1))
                tl.store(target + row * pitch + column, block, (pitch, 1))
