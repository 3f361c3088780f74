"""Tile plans: every product of elements is in one step, and the counts are those of the steps."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.model.tiles import Tile, TilePlan, TileSize, blocked_offset

lengths = st.integers(1, 40)
plans = st.builds(
    TilePlan, lengths, lengths, lengths, st.builds(TileSize, *[st.integers(1, 20)] * 3)
)


@settings(max_examples=25)
@given(plans)
def test_every_product_of_two_elements_is_in_one_step(plan: TilePlan) -> None:
    counts = np.zeros((plan.m, plan.k, plan.n), int)
    for tile in plan:
        counts[slice(*tile.rows), slice(*tile.depth), slice(*tile.columns)] += 1
    assert (counts == 1).all()


@settings(max_examples=25)
@given(plans)
def test_the_steps_of_an_output_tile_follow_each_other(plan: TilePlan) -> None:
    depth = 0
    for tile in plan:
        assert (tile.first, tile.depth[0]) == (depth == 0, depth)
        assert tile.last == (tile.depth[1] == plan.k)
        depth = 0 if tile.last else tile.depth[1]
    assert depth == 0


@settings(max_examples=25)
@given(plans)
def test_the_counts_are_those_of_the_steps(plan: TilePlan) -> None:
    steps = list(plan)
    assert plan.tiles == len(steps)
    assert plan.output_tiles == sum(step.last for step in steps)
    assert plan.macs == sum(int(np.prod(step.size)) for step in steps)
    assert all(
        each <= full for step in steps for each, full in zip(step.size, plan.tile, strict=True)
    )


@settings(max_examples=25)
@given(plans)
def test_each_kind_of_step_is_counted_once(plan: TilePlan) -> None:
    steps = Counter((step.size, step.last) for step in plan)
    assert {(step.size, step.last): count for step, count in plan.kinds()} == steps
    assert len(plan.kinds()) == len(steps)
    assert {step for step, _ in plan.kinds()} <= set(plan)


@pytest.mark.parametrize(
    ("sides", "utilisation"),
    [
        ((64, 128, 64), 1.0),
        ((1, 64, 32), 1 / 32),
        ((33, 64, 32), 33 / 64),
        ((32, 65, 32), 65 / 128),
    ],
)
def test_padding_is_paid_for_whole_tiles(sides: tuple[int, int, int], utilisation: float) -> None:
    assert TilePlan(*sides, TileSize(32, 64, 32)).padding_utilisation == utilisation


def test_a_product_smaller_than_a_tile_is_one_step() -> None:
    assert list(TilePlan(3, 5, 7, TileSize(32, 64, 32))) == [
        Tile((0, 3), (0, 5), (0, 7), first=True, last=True)
    ]


def test_blocks_are_stored_row_by_row_and_the_last_ones_are_small() -> None:
    # 5 x 7 in blocks of 2 x 3: widths 3 3 1, heights 2 2 1.
    starts = [
        [blocked_offset((5, 7), (2, 3), row, column) for column in (0, 3, 6)] for row in (0, 2, 4)
    ]
    assert starts == [[0, 6, 12], [14, 20, 26], [28, 31, 34]]
