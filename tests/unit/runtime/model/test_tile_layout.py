"""The addresses of tiles in registers and in TCM."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.model.tile_layout import BufferLayout, RegisterLayout
from runtime.model.tiles import TileSize

BASE = 1 << 20
TILE = TileSize(32, 64, 32)
SIDE = st.integers(1, 64)
TILES = st.builds(TileSize, SIDE, SIDE, SIDE)


def disjoint(ranges: list[tuple[int, int]], nbytes: int) -> bool:
    """Whether the ranges fill [BASE, BASE + nbytes) without a gap and without an overlap."""
    ranges = sorted(ranges)
    ends = [start + size for start, size in ranges]
    return [BASE, *ends] == [*(start for start, _ in ranges), BASE + nbytes]


@given(TILES)
def test_registers_of_full_tiles_of_four_bytes_fill_the_register_file_without_overlap(
    tile: TileSize,
) -> None:
    layout = RegisterLayout(BASE, tile)
    places = [(layout.a(i), tile.m * tile.k * 4) for i in range(2)] + [
        (layout.b(i), tile.k * tile.n * 4) for i in range(2)
    ]
    places += [(layout.accumulator(i), tile.m * tile.n * 4) for i in range(2)]
    places += [(layout.bias(i), tile.n * 4) for i in range(4)]
    assert disjoint(places, layout.nbytes)


@given(TILES, st.integers(1, 5))
def test_buffers_of_full_tiles_of_four_bytes_do_not_overlap(tile: TileSize, count: int) -> None:
    layout = BufferLayout(BASE, tile, count)
    places = [(layout.a(i), tile.m * tile.k * 4) for i in range(count)]
    places += [(layout.b(i), tile.k * tile.n * 4) for i in range(count)]
    places += [(layout.result(i), tile.m * tile.n * 4) for i in range(count)]
    assert disjoint(places, layout.nbytes)


@pytest.mark.parametrize(
    ("nbytes", "expected"),
    [
        # 2 x (A 8 KiB + B 8 KiB) + 2 accumulators of 4 KiB + 4 rows of 128 B; 2 x (8 + 8 + 4) KiB.
        (RegisterLayout(0, TILE).nbytes, 2 * 16384 + 2 * 4096 + 4 * 128),
        (BufferLayout(0, TILE, 2).nbytes, 2 * 20480),
    ],
)
def test_the_default_tile_needs(nbytes: int, expected: int) -> None:
    assert nbytes == expected
