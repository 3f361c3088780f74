"""Placement: every element of a tensor is in exactly the shards of the policy."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from runtime import torch
from runtime.model.blocked_layout import BlockedLayout
from runtime.model.placement import (
    ONE_PE,
    SPREAD_BYTES,
    DPPolicy,
    Placement,
    ShardSpec,
    default_placement,
    resolve_dp_policy,
)
from runtime.model.tile_placement import ORDERS, TilePlacement
from tests.support.topologies import variant_text
from tests.support.world import simulate

SPLITS = ["replicate", "column_wise", "row_wise"]
policies = st.builds(
    DPPolicy,
    cube=st.sampled_from(SPLITS),
    pe=st.sampled_from(SPLITS),
    num_cubes=st.none() | st.integers(1, 4),
    num_pes=st.none() | st.integers(1, 4),
)
CUBES, PES, ITEMSIZE = 4, 4, 2


def resolve(policy: Placement, shape: tuple[int, ...]) -> tuple[ShardSpec, ...]:
    """The shards, for shapes that divide."""
    try:
        return resolve_dp_policy(policy, shape, ITEMSIZE, cubes=CUBES, pes=PES, target_sip=3)
    except ValueError:
        assume(False)
        raise


shapes = st.lists(st.sampled_from([1, 2, 4, 8, 12, 16, 48]), min_size=1, max_size=3).map(tuple)


@settings(max_examples=40)
@given(policies, shapes)
def test_every_element_has_as_many_copies_as_the_policy_replicates(
    policy: DPPolicy, shape: tuple[int, ...]
) -> None:
    copies = np.zeros(shape, int)
    for shard in resolve(policy, shape):
        copies[shard.index] += 1
    replicated = 1
    for split, count in (
        (policy.cube, policy.num_cubes or CUBES),
        (policy.pe, policy.num_pes or PES),
    ):
        replicated *= count if split == "replicate" else 1
    assert (copies == replicated).all()


@settings(max_examples=40)
@given(policies, shapes)
def test_shards_are_consecutive_and_copies_have_equal_offsets(
    policy: DPPolicy, shape: tuple[int, ...]
) -> None:
    shards = resolve(policy, shape)
    ranges = sorted({(shard.offset_bytes, shard.offset_bytes + shard.nbytes) for shard in shards})
    assert ranges[0][0] == 0
    assert ranges[-1][1] == np.prod(shape) * ITEMSIZE
    assert all(end == start for (_, end), (start, _) in pairwise(ranges))
    assert len(ranges) == len({shard.spans for shard in shards})


@settings(max_examples=40)
@given(policies, shapes)
def test_there_is_one_shard_on_every_pe_of_the_policy(
    policy: DPPolicy, shape: tuple[int, ...]
) -> None:
    places = [shard.coordinates for shard in resolve(policy, shape)]
    assert places == [
        (3, cube, pe)
        for cube in range(policy.num_cubes or CUBES)
        for pe in range(policy.num_pes or PES)
    ]


@given(st.integers(1, 40), st.sampled_from(["column_wise", "row_wise"]))
def test_an_axis_that_does_not_divide_is_refused(length: int, split: str) -> None:
    assume(length % CUBES)
    with pytest.raises(ValueError, match=rf"{length} elements do not divide by {CUBES}"):
        resolve_dp_policy(
            DPPolicy(cube=split, num_pes=1), (length, length), 4, cubes=CUBES, pes=PES, target_sip=0
        )


TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 2, "h": 2},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "NE", "SW", "SE"],
)
sides = st.integers(1, 9)
tile_placements = st.builds(
    TilePlacement,
    rows=sides,
    columns=sides,
    order=st.sampled_from(ORDERS),
    num_cubes=st.none() | st.integers(1, CUBES),
    num_pes=st.none() | st.integers(1, PES),
)


@given(tile_placements, sides, sides)
def test_tiles_are_dealt_round_robin_and_lie_in_the_order_of_the_deal(
    placement: TilePlacement, rows: int, columns: int
) -> None:
    shards = resolve(placement, (rows, columns))
    pes = [
        (3, cube, pe)
        for cube in range(placement.num_cubes or CUBES)
        for pe in range(placement.num_pes or PES)
    ]
    assert [shard.coordinates for shard in shards] == [
        pes[tile % len(pes)] for tile in range(len(shards))
    ]
    # The virtual range is a blocked matrix: every tile is one row-major piece of it.
    blocked = BlockedLayout(placement.rows, placement.columns, placement.order)
    positions = blocked.positions((rows, columns)) * ITEMSIZE
    for shard in shards:
        tile = positions[shard.index].reshape(-1)
        assert tile.tolist() == list(
            range(shard.offset_bytes, shard.offset_bytes + shard.nbytes, ITEMSIZE)
        )


@given(tile_placements, sides, sides)
def test_every_element_is_in_one_tile_of_the_full_size_or_at_an_end(
    placement: TilePlacement, rows: int, columns: int
) -> None:
    copies = np.zeros((rows, columns), int)
    for shard in resolve(placement, (rows, columns)):
        copies[shard.index] += 1
        for (start, stop), side, length in zip(
            shard.spans, (placement.rows, placement.columns), (rows, columns), strict=True
        ):
            assert start % side == 0
            assert stop == min(start + side, length)
    assert (copies == 1).all()


@settings(max_examples=15)
@given(
    tile_placements,
    sides,
    sides,
    st.none() | st.builds(BlockedLayout, sides, sides, st.sampled_from(ORDERS)),
)
def test_the_host_reads_what_it_wrote_in_every_tile_and_layout(
    placement: TilePlacement, rows: int, columns: int, layout: BlockedLayout | None
) -> None:
    matrix = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)

    def program() -> list[np.ndarray]:
        tensor = torch.from_numpy(matrix, dp=placement, layout=layout)
        first = next(iter(tensor.shards)).spec.index
        before = tensor.numpy()
        tensor[first] = -1
        return [before, tensor.numpy(), tensor[first]]

    simulated = simulate(lambda _rank: program(), 1, topology=TOPOLOGY)
    before, after, tile = simulated.returned[0]
    np.testing.assert_array_equal(before, matrix)
    assert (tile == -1).all()
    assert (after == -1).sum() == tile.size


@settings(max_examples=60)
@given(st.lists(st.integers(0, 40) | st.sampled_from([1, 64, 96]), max_size=3).map(tuple))
def test_a_tensor_without_a_placement_is_spread_in_packets_and_in_row_major_order(
    shape: tuple[int, ...],
) -> None:
    policy = default_placement(shape, ITEMSIZE, cubes=CUBES, pes=PES)
    shards = resolve(policy, shape)
    whole = ITEMSIZE * math.prod(shape)
    assert sum(shard.nbytes for shard in shards) == whole
    if whole < 2 * SPREAD_BYTES:
        assert policy == ONE_PE
    if len(shards) > 1:
        assert min(shard.nbytes for shard in shards) >= SPREAD_BYTES
    start = 0
    elements = np.arange(math.prod(shape)).reshape(shape)
    for shard in shards:
        part = elements[shard.index].reshape(-1)
        np.testing.assert_array_equal(part, np.arange(start, start + part.size))
        assert shard.offset_bytes == start * ITEMSIZE
        start += part.size


@pytest.mark.parametrize(
    ("shape", "pes"),
    [
        ((2, 2047), 1),
        ((2, 2048), 2),
        ((4096,), 2),
        ((1, 1, 65536), 16),
        ((16, 4096), 16),
        # 3 rows: one on each of 3 cubes, whose PEs divide it.
        ((3, 65536), 12),
        # No number of PEs divides 131 rows.
        ((131, 4096), 1),
        ((), 1),
    ],
)
def test_as_many_pes_as_divide_a_tensor_hold_a_packet_of_it_or_more(
    shape: tuple[int, ...], pes: int
) -> None:
    policy = default_placement(shape, ITEMSIZE, cubes=CUBES, pes=PES)
    assert len(resolve(policy, shape)) == pes


def test_of_equal_numbers_of_pes_those_of_fewer_cubes_hold_a_tensor() -> None:
    assert default_placement((4, 2048), ITEMSIZE, cubes=4, pes=4) == DPPolicy(
        cube="row_wise", pe="row_wise", num_cubes=1, num_pes=4
    )
