"""Validators: a `ValueError` refuses the placement of a tensor that an algorithm does not
support.
"""

from collections.abc import Callable, Sequence

from runtime.ccl.mappers import CubePe
from runtime.model.placement import ShardSpec

Validator = Callable[[Sequence[ShardSpec], Sequence[CubePe]], None]


def any_placement(shards: Sequence[ShardSpec], participants: Sequence[CubePe]) -> None:
    """Every shard is on a PE that takes part."""
    taking_part = set(participants)
    outside = [shard for shard in shards if (shard.cube, shard.pe) not in taking_part]
    if outside:
        raise ValueError(
            f"the shard on {outside[0].coordinates} is not on a PE that takes part in this "
            "collective"
        )


def single_shard_per_rank(shards: Sequence[ShardSpec], participants: Sequence[CubePe]) -> None:
    """One shard, on the one PE that takes part."""
    pes = [(shard.cube, shard.pe) for shard in shards]
    if pes != list(participants[:1]):
        cube, pe = participants[0]
        raise ValueError(
            f"needs a single shard on cube {cube} pe {pe}, the tensor has {len(pes)} shards"
        )


def multi_pe_sip_local(shards: Sequence[ShardSpec], participants: Sequence[CubePe]) -> None:
    """Exactly one shard on every PE that takes part, all of equal size."""
    pes = [(shard.cube, shard.pe) for shard in shards]
    if pes != list(participants):
        needed, policy = _placement(participants)
        raise ValueError(
            f"needs one shard on {needed}, the tensor has {len(pes)} shards; place it with {policy}"
        )
    if len({shard.nbytes for shard in shards}) > 1:
        first, other = (
            shards[0],
            next(shard for shard in shards if shard.nbytes != shards[0].nbytes),
        )
        sizes = (
            f"{first.nbytes} bytes on {first.coordinates} and {other.nbytes} on {other.coordinates}"
        )
        raise ValueError(f"needs shards of one size, the tensor has {sizes}")


def _placement(participants: Sequence[CubePe]) -> tuple[str, str]:
    """The participants in words, and a policy that places a shard on each of them."""
    cubes = len({cube for cube, _ in participants})
    if all(pe == 0 for _, pe in participants):
        return (
            f"pe 0 of each of {cubes} cubes",
            'DPPolicy(cube="row_wise" or "replicate", num_pes=1)',
        )
    policy = 'DPPolicy(cube="row_wise" or "replicate", pe="row_wise" or "replicate")'
    return f"each of {len(participants)} PEs of {cubes} cubes", policy


VALIDATORS: dict[str, Validator] = {
    "any_placement": any_placement,
    "single_shard_per_rank": single_shard_per_rank,
    "multi_pe_sip_local": multi_pe_sip_local,
}
