"""Tiles of a matrix, dealt to PEs."""

import re
from collections.abc import Callable

import pytest

from runtime import torch
from runtime.model.placement import ShardSpec, resolve_dp_policy
from runtime.model.tile_placement import TilePlacement


def resolve(
    placement: TilePlacement, shape: tuple[int, ...], cubes: int = 2, pes: int = 2
) -> tuple[ShardSpec, ...]:
    return resolve_dp_policy(placement, shape, 4, cubes=cubes, pes=pes, target_sip=0)


def test_tiles_go_round_the_pes_of_all_cubes_and_begin_again() -> None:
    shards = resolve(torch.tiled_row_major(2, 2), (4, 6))
    assert [(shard.cube, shard.pe) for shard in shards] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
        (0, 0),
        (0, 1),
    ]
    assert [shard.spans[0][0] for shard in shards] == [0, 0, 0, 2, 2, 2]
    assert [shard.spans[1][0] for shard in shards] == [0, 2, 4, 0, 2, 4]
    assert [shard.offset_bytes for shard in shards] == [0, 16, 32, 48, 64, 80]


def test_column_major_deals_down_the_columns_of_tiles() -> None:
    shards = resolve(torch.tiled_column_major(2, 2), (4, 4))
    assert [(shard.spans[0][0], shard.spans[1][0]) for shard in shards] == [
        (0, 0),
        (2, 0),
        (0, 2),
        (2, 2),
    ]


def test_limits_keep_the_tiles_on_the_first_cubes_and_pes() -> None:
    shards = resolve(torch.tiled_row_major(1, 1, num_cubes=2, num_pes=1), (1, 3))
    assert [(shard.cube, shard.pe) for shard in shards] == [(0, 0), (1, 0), (0, 0)]


def test_tiles_at_the_ends_have_the_elements_that_are_left() -> None:
    shards = resolve(torch.tiled_row_major(2, 3), (3, 4))
    assert [shard.nbytes // 4 for shard in shards] == [6, 2, 3, 1]
    assert [shard.offset_bytes // 4 for shard in shards] == [0, 6, 8, 11]


def test_pes_without_a_tile_hold_no_shard() -> None:
    assert [shard.pe for shard in resolve(torch.tiled_row_major(4, 4), (4, 8), 1, 8)] == [0, 1]


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_a_matrix_without_elements_has_empty_tiles(shape: tuple[int, int]) -> None:
    shards = resolve(torch.tiled_row_major(4, 4), shape)
    assert [(shard.coordinates, shard.nbytes) for shard in shards] == [((0, 0, 0), 0)]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (
            lambda: torch.tiled_row_major(0, 4),
            "tiles of 0 x 4 elements: both lengths must be at least 1",
        ),
        (
            lambda: TilePlacement(2, 2, "rowmajor"),
            "tiles in 'rowmajor' order: unknown order; did you mean 'row_major'?",
        ),
        (
            lambda: resolve(torch.tiled_row_major(2, 2), (4,)),
            "tiles are of matrices, with 2 axes; shape (4,) has 1: place it with DPPolicy(...)",
        ),
        (
            lambda: resolve(torch.tiled_column_major(2, 2, num_pes=3), (4, 4)),
            "tiled_column_major(num_pes=3): this topology has 1 to 2",
        ),
    ],
)
def test_what_is_no_placement_is_refused(make: Callable[[], object], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        make()
