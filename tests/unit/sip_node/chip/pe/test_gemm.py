"""The models of the matrix engine: what one step costs."""

from typing import Any

import pytest

from runtime.model.tiles import Tile
from tests.support.products import Product, measure

FULL = Tile((0, 32), (0, 64), (0, 32), first=True, last=True)
CORNER = Tile((32, 33), (64, 67), (96, 98), first=False, last=True)
INNER = Tile((0, 32), (0, 64), (0, 32), first=False, last=False)


def step_ps(tile: Tile, **gemm: Any) -> int:
    numbers = {"model": "macs", "clock_ghz": 1.0, "macs_per_cycle": 4096, "rows": 32, "cols": 32}
    [pe] = measure(Product(1, 1, 1), pe__gemm=numbers | gemm).world.node.chips[0].pes
    return pe.gemm.step_ps(tile)


@pytest.mark.parametrize("tile", [FULL, CORNER, INNER])
def test_macs_takes_as_long_for_any_tile_as_for_a_full_one(tile: Tile) -> None:
    # 32 * 64 * 32 multiplications at 4096 a cycle.
    assert step_ps(tile) == 16_000


def test_a_cycle_that_is_not_full_is_a_cycle() -> None:
    # 65,536 / 1000 = 65.5 cycles at 3 GHz.
    assert step_ps(FULL, macs_per_cycle=1000, clock_ghz=3.0) == 66 * 1000 // 3


@pytest.mark.parametrize(
    ("tile", "cycles"),
    [(INNER, 64), (FULL, 64 + 32 + 32 - 2), (CORNER, 3 + 32 + 32 - 2)],
)
def test_systolic_os_takes_the_depth_and_at_the_last_step_the_skew(tile: Tile, cycles: int) -> None:
    assert step_ps(tile, model="systolic_os") == cycles * 1000


@pytest.mark.parametrize(("tile", "passes"), [(FULL, 4 * 2), (CORNER, 1)])
def test_systolic_os_goes_over_a_tile_larger_than_its_array_in_passes(
    tile: Tile, passes: int
) -> None:
    depth = tile.size.k
    assert (
        step_ps(tile, model="systolic_os", rows=8, cols=16) == passes * (depth + 8 + 16 - 2) * 1000
    )
