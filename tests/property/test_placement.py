"""Placement: every element of a tensor is in exactly the shards of the policy."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from runtime.model.placement import DPPolicy, ShardSpec, resolve_dp_policy

SPLITS = ["replicate", "column_wise", "row_wise"]
policies = st.builds(
    DPPolicy,
    cube=st.sampled_from(SPLITS),
    pe=st.sampled_from(SPLITS),
    num_cubes=st.none() | st.integers(1, 4),
    num_pes=st.none() | st.integers(1, 4),
)
CUBES, PES, ITEMSIZE = 4, 4, 2


def resolve(policy: DPPolicy, shape: tuple[int, ...]) -> tuple[ShardSpec, ...]:
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
