"""Deals the tiles of a matrix to PEs: tile j of n lies on PE j mod P.

The virtual range of the tensor holds tile after tile in the order of the deal, and each tile
row-major without gaps. So it is a blocked matrix (`runtime.model.blocked_layout`), whose tiles lie
in the memories of different PEs. A kernel takes its tiles as they were dealt:

    for tile in range(own PE, number of tiles, number of PEs):
        block = tl.load(x + tile * rows * columns, (rows, columns))
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from runtime.core.errors import nearest

Span = tuple[int, int]
TileOrder = Literal["row_major", "column_major"]
ORDERS: tuple[TileOrder, ...] = ("row_major", "column_major")


def check_tiles(rows: int, columns: int, order: str) -> None:
    """`ValueError` for tiles without elements, or in an unknown order."""
    if rows < 1 or columns < 1:
        raise ValueError(f"tiles of {rows} x {columns} elements: both lengths must be at least 1")
    if order not in ORDERS:
        raise ValueError(f"tiles in {order!r} order: unknown order{nearest(order, ORDERS)}")


@dataclass(frozen=True)
class TilePlacement:
    """A placement of matrices: tiles of `rows` x `columns` elements, dealt round-robin over PEs.

    The PEs are in (cube, pe) order; `num_cubes` and `num_pes` limit them to the first cubes and the
    first PEs of each (None: all). `order` is the order in which the tiles are dealt.

    Tiles at the ends of a matrix are partial: they have the elements that are left. PEs without a
    tile, where there are fewer tiles than PEs, hold no shard, so kernels do not run there.
    """

    rows: int
    columns: int
    order: TileOrder
    num_cubes: int | None = None
    num_pes: int | None = None

    def __post_init__(self) -> None:
        check_tiles(self.rows, self.columns, self.order)

    def tiles(self, shape: tuple[int, ...]) -> Iterator[tuple[Span, Span]]:
        """The (start, stop) of each tile along both axes, in the order of the deal.

        A matrix without elements is one tile. `ValueError` for another number of axes than two.
        """
        if len(shape) != 2:
            raise ValueError(
                f"tiles are of matrices, with 2 axes; shape {shape} has {len(shape)}: "
                "place it with DPPolicy(...)"
            )
        bands = _cut(shape[0], self.rows), _cut(shape[1], self.columns)
        if self.order == "row_major":
            yield from ((rows, columns) for rows in bands[0] for columns in bands[1])
        else:
            yield from ((rows, columns) for columns in bands[1] for rows in bands[0])


def tiled_row_major(
    rows: int, columns: int, *, num_cubes: int | None = None, num_pes: int | None = None
) -> TilePlacement:
    """Tiles dealt row of tiles by row of tiles, for `dp=`."""
    return TilePlacement(rows, columns, "row_major", num_cubes, num_pes)


def tiled_column_major(
    rows: int, columns: int, *, num_cubes: int | None = None, num_pes: int | None = None
) -> TilePlacement:
    """Tiles dealt column of tiles by column of tiles, for `dp=`."""
    return TilePlacement(rows, columns, "column_major", num_cubes, num_pes)


def _cut(length: int, step: int) -> list[Span]:
    # An empty axis is one empty span, so that every tensor has a shard, on the first PE.
    return [(start, min(start + step, length)) for start in range(0, max(length, 1), step)]
