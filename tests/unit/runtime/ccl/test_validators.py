import re
from dataclasses import replace

import pytest

from runtime.ccl.mappers import CubePe
from runtime.ccl.validators import VALIDATORS
from runtime.model.placement import DPPolicy, ShardSpec, resolve_dp_policy

LEADERS: list[CubePe] = [(0, 0), (1, 0)]


def shards(policy: DPPolicy) -> tuple[ShardSpec, ...]:
    return resolve_dp_policy(policy, (4, 4), 4, cubes=2, pes=2, target_sip=1)


SUPPORTED = {
    "any_placement": [
        DPPolicy(num_pes=1),
        DPPolicy(num_cubes=1, num_pes=1),
        DPPolicy(cube="row_wise", num_pes=1),
    ],
    "single_shard_per_rank": [DPPolicy(num_cubes=1, num_pes=1)],
    "multi_pe_sip_local": [DPPolicy(num_pes=1), DPPolicy(cube="row_wise", num_pes=1)],
}
REFUSED = {
    "any_placement": (
        DPPolicy(num_cubes=1),
        "the shard on sip 1 cube 0 pe 1 is not on a PE that takes part",
    ),
    "single_shard_per_rank": (
        DPPolicy(num_pes=1),
        "needs a single shard on cube 0 pe 0, the tensor has 2 shards",
    ),
    "multi_pe_sip_local": (
        DPPolicy(num_cubes=1),
        (
            "needs one shard on pe 0 of each of 2 cubes, the tensor has 2 shards; "
            "place it with DPPolicy("
        ),
    ),
}


@pytest.mark.parametrize("name", VALIDATORS)
def test_a_supported_placement_is_accepted(name: str) -> None:
    refused: list[str] = []
    for policy in SUPPORTED[name]:
        try:
            VALIDATORS[name](shards(policy), LEADERS)
        except ValueError as error:
            refused.append(f"{policy}: {error}")
    assert refused == []


@pytest.mark.parametrize("name", VALIDATORS)
def test_the_error_of_a_refused_placement_has_what_the_algorithm_needs(name: str) -> None:
    policy, problem = REFUSED[name]
    with pytest.raises(ValueError, match=re.escape(problem)):
        VALIDATORS[name](shards(policy), LEADERS)


def test_where_every_pe_takes_part_the_advice_places_a_shard_on_every_pe() -> None:
    every_pe: list[CubePe] = [(0, 0), (0, 1), (1, 0), (1, 1)]
    validate = VALIDATORS["multi_pe_sip_local"]
    validate(shards(DPPolicy(cube="row_wise", pe="replicate")), every_pe)
    advice = (
        "needs one shard on each of 4 PEs of 2 cubes, the tensor has 2 shards; "
        'place it with DPPolicy(cube="row_wise" or'
    )
    with pytest.raises(ValueError, match=re.escape(advice)):
        validate(shards(DPPolicy(num_pes=1)), every_pe)


def test_shards_of_two_sizes_are_refused_with_both() -> None:
    first, second = shards(DPPolicy(num_pes=1))
    uneven = [first, replace(second, nbytes=first.nbytes // 2)]
    sizes = "64 bytes on sip 1 cube 0 pe 0 and 32 on sip 1 cube 1 pe 0"
    problem = f"needs shards of one size, the tensor has {sizes}"
    with pytest.raises(ValueError, match=problem):
        VALIDATORS["multi_pe_sip_local"](uneven, LEADERS)
