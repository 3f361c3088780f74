"""The shards of a tensor on the PEs of a SIP that are not down."""

from dataclasses import replace

from runtime.device.rank.rank_state import RankState
from runtime.model.placement import DPPolicy, Placement, ShardSpec, resolve_dp_policy


def placed(
    policy: Placement, shape: tuple[int, ...], itemsize: int, state: RankState
) -> tuple[ShardSpec, ...]:
    """The shards of a tensor in the memory of a rank, as `resolve_dp_policy`.

    Numbers of cubes and of PEs count those that are not down; `DPPolicy(cubes=...)` names cubes,
    and `ValueError` names one that is down.
    """
    pes = state.pes
    if not pes.is_whole and isinstance(policy, DPPolicy) and policy.cubes is not None:
        inside = [cube for cube in policy.cubes if 0 <= cube < state.topology.cubes]
        for cube in inside:
            if cube not in pes.cube_numbers:
                raise ValueError(
                    f"DPPolicy(cubes={policy.cubes}) needs cube{cube}, which is down in a SIP"
                )
        if len(inside) == len(policy.cubes):
            policy = replace(policy, cubes=tuple(map(pes.cube_numbers.index, inside)))
    specs = resolve_dp_policy(
        policy, shape, itemsize, cubes=pes.cubes, pes=pes.per_cube, target_sip=state.rank
    )
    if pes.is_whole:
        return specs
    coordinates = (pes.coordinates(spec.cube, spec.pe) for spec in specs)
    return tuple(
        replace(spec, cube=cube, pe=pe) for spec, (cube, pe) in zip(specs, coordinates, strict=True)
    )
