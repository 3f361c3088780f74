"""The smallest machine, machines that are not square, and 64 SIPs.

Every run checks the laws of the model.
"""

import pytest

from runtime import DPPolicy, torch
from runtime.device.rank.rank_state import running_rank
from tests.support.topologies import variant_text
from tests.support.world import simulate

ONE_CUBE = {"sip__cube_mesh": {"w": 1, "h": 1}}
ONE_PE_A_CUBE = {"cube__pe_layout__corners": ["NW"], "cube__pe_layout__pe_per_corner": 1}
LONE_PE = ONE_CUBE | ONE_PE_A_CUBE
NUMEL = 24


def copy_and_reduce(rank: int) -> float:
    """Write a replica to every cube, reduce over all ranks; return the value of the first one."""
    torch.distributed.init_process_group("ahbm")
    cubes = running_rank().topology.cubes
    on_cubes = torch.full(
        (cubes, NUMEL), rank + 1, dp=DPPolicy(cube="row_wise", pe="replicate", num_pes=1)
    )
    assert (on_cubes.numpy() == rank + 1).all()
    summed = torch.full((NUMEL,), rank + 1)
    torch.distributed.all_reduce(summed)
    [value] = {float(element) for element in summed.numpy()}
    return value


def check(sips: int, **changes: object) -> None:
    returned = simulate(copy_and_reduce, sips, topology=variant_text(**changes)).returned
    assert returned == dict.fromkeys(range(sips), sips * (sips + 1) / 2)


@pytest.mark.parametrize(
    "changes",
    [
        LONE_PE,
        LONE_PE
        | {
            "cube__noc__rows": 1,
            "cube__noc__cols": 1,
            "cube__noc__hbm_hole_mm": [0.0, 0.0, 0.0, 0.0],
        },
        ONE_PE_A_CUBE | {"sip__cube_mesh": {"w": 2, "h": 3}},
        ONE_PE_A_CUBE | {"sip__cube_mesh": {"w": 3, "h": 2}, "sip__io_chiplet__edge": "W"},
        ONE_CUBE,
    ],
    ids=["one PE", "one router", "2 x 3 cubes", "IO chiplet in the west", "one cube"],
)
@pytest.mark.parametrize("sips", [1, 2])
def test_a_sip_of_any_shape_works(sips: int, changes: dict[str, object]) -> None:
    check(sips, **changes)


@pytest.mark.parametrize(
    ("sips", "system"),
    [
        (3, {"fabric": "direct"}),
        (3, {"fabric": "switch"}),
        (4, {"topology": "mesh_2d"}),
        (9, {"topology": "mesh_2d"}),
        (6, {"topology": "mesh_2d_no_wrap", "w": 3, "h": 2}),
        (4, {"topology": "torus_2d", "w": 1, "h": 4}),
    ],
    ids=lambda value: " ".join(map(str, value.values())) if isinstance(value, dict) else str(value),
)
def test_sips_in_any_number_and_arrangement_work(sips: int, system: dict[str, object]) -> None:
    check(sips, **LONE_PE, **{f"system__sips__{key}": value for key, value in system.items()})


@pytest.mark.slow
@pytest.mark.parametrize("fabric", ["direct", "switch"])
def test_64_sips_work(fabric: str) -> None:
    check(64, **LONE_PE, system__sips__topology="torus_2d", system__sips__fabric=fabric)
