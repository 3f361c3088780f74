"""Validators: whether a tensor's placement suits an algorithm. A `ValueError` says what it has and what it needs."""

from collections.abc import Callable, Sequence

from runtime.ccl.mappers import CubePe
from runtime.placement import ShardSpec

Validator = Callable[[Sequence[ShardSpec], Sequence[CubePe]], None]


def any_placement(shards: Sequence[ShardSpec], participants: Sequence[CubePe]) -> None:
    """Every shard lies on a PE that takes part."""
    outside = [shard for shard in shards if (shard.cube, shard.pe) not in set(participants)]
    if outside:
        raise ValueError(f"the shard on {outside[0].place} is not on a PE that takes part in this collective")


def single_shard_per_rank(shards: Sequence[ShardSpec], participants: Sequence[CubePe]) -> None:
    """One shard, on the one PE that takes part."""
    places = [(shard.cube, shard.pe) for shard in shards]
    if places != list(participants[:1]):
        cube, pe = participants[0]
        raise ValueError(f"needs a single shard on cube {cube} pe {pe}, the tensor has {len(places)} shards")


def multi_pe_sip_local(shards: Sequence[ShardSpec], participants: Sequence[CubePe]) -> None:
    """Exactly one shard on every PE that takes part, all of one size."""
    places = [(shard.cube, shard.pe) for shard in shards]
    if places != list(participants):
        raise ValueError(
            f"needs one shard on pe 0 of each of {len(participants)} cubes, the tensor has {len(places)} shards; "
            'place it with DPPolicy(cube="row_wise" or "replicate", num_pes=1)'
        )


VALIDATORS: dict[str, Validator] = {
    "any_placement": any_placement,
    "single_shard_per_rank": single_shard_per_rank,
    "multi_pe_sip_local": multi_pe_sip_local,
}
