"""All-reduce on simulated chips, against numpy.

The laws of the model are checked at the end of each run.
"""

from collections import Counter

import numpy as np
import pytest
import yaml
from msgspec.structs import replace

from runtime import DPPolicy, torch
from runtime.core.config.config_file import default_file
from runtime.core.dtypes import ALL, DType, boolean, float16, float32, int32
from runtime.model.placement import ONE_PE
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

dist = torch.distributed
ONE_PE_A_CUBE = {"cube__pe_layout__pe_per_corner": 1, "cube__pe_layout__corners": ["NW"]}
GRIDS = {
    "torus": {"system__sips__topology": "torus_2d"},
    "mesh": {"system__sips__topology": "mesh_2d_no_wrap"},
}


def ccl(name: str, **values: object) -> str:
    """The file that ships, with other parameters for one algorithm."""
    content = yaml.safe_load(default_file("ccl.yaml").read_text())
    content["algorithms"][name].update(values)
    return yaml.safe_dump(content)


def contribution(rank: int, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """Small integers: every order of additions gives the same sum in every type."""
    return np.random.default_rng(rank).integers(-4, 5, shape).astype(dtype.numpy)


def all_reduced(
    name: str,
    sips: int,
    shape: tuple[int, ...],
    dtype: DType = float32,
    *,
    topology: str,
    dp: DPPolicy = ONE_PE,
    files: str | None = None,
) -> Simulation:
    """A run in which every rank reduces its `contribution` and returns the result."""

    def program(rank: int) -> np.ndarray:
        dist.init_process_group("ahbm", algorithm=name)
        tensor = torch.from_numpy(contribution(rank, shape, dtype), dp=dp)
        dist.all_reduce(tensor)
        return tensor.numpy()

    return simulate(program, sips, topology=topology, ccl=files)


def assert_ring_sum(world: Simulation, shape: tuple[int, ...], dtype: DType = float32) -> None:
    expected = sum(contribution(rank, shape, dtype) for rank in world.returned)
    for values in world.returned.values():
        np.testing.assert_array_equal(values, expected)


def assert_intercube_sum(world: Simulation, shape: tuple[int, ...], dtype: DType = float32) -> None:
    """A row a cube: every row of every rank is the sum of all rows of all ranks."""
    expected = sum(
        contribution(rank, shape, dtype).sum(axis=0, dtype=dtype.numpy) for rank in world.returned
    )
    for values in world.returned.values():
        np.testing.assert_array_equal(values, np.broadcast_to(expected, shape))


LONE_CUBE = variant_text(sip__cube_mesh={"w": 1, "h": 1}, **ONE_PE_A_CUBE)


def cubes(w: int, h: int, **changes: object) -> str:
    return variant_text(**({"sip__cube_mesh": {"w": w, "h": h}} | ONE_PE_A_CUBE | changes))


ROW_A_CUBE = DPPolicy(cube="row_wise", num_pes=1)


@pytest.mark.parametrize("sips", [1, 2, 3, 4, 5])
def test_a_ring_of_any_size_adds_up(sips: int) -> None:
    assert_ring_sum(all_reduced("ring", sips, (17,), topology=LONE_CUBE), (17,))


@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_a_ring_adds_any_number_of_elements(count: int) -> None:
    assert_ring_sum(all_reduced("ring", 3, (count,), topology=LONE_CUBE), (count,))


@pytest.mark.parametrize("dtype", [each for each in ALL if each != boolean], ids=repr)
def test_a_ring_adds_every_type(dtype: DType) -> None:
    assert_ring_sum(all_reduced("ring", 2, (33,), dtype, topology=LONE_CUBE), (33,), dtype)


@pytest.mark.parametrize("kind", ["tcm", "hbm", "sram"])
def test_a_ring_adds_with_queues_in_every_memory(kind: str) -> None:
    files = ccl("ring", buffer_kind=kind, n_slots=2, slot_size=128)
    assert_ring_sum(all_reduced("ring", 3, (200,), files=files, topology=LONE_CUBE), (200,))


def test_a_ring_adds_shards_at_equal_coordinates() -> None:
    topology = variant_text(sip__cube_mesh={"w": 2, "h": 1}, cube__pe_layout__pe_per_corner=1)
    placement = DPPolicy(cube="row_wise", pe="column_wise")
    assert_ring_sum(all_reduced("ring", 2, (2, 12), dp=placement, topology=topology), (2, 12))


def test_a_ring_over_a_torus_follows_its_links() -> None:
    world = all_reduced("ring", 4, (9,), topology=cubes(1, 1, **GRIDS["torus"]))
    assert_ring_sum(world, (9,))
    # In the order of ranks, the neighbours 1 and 2 are diagonal on the torus 0 1 / 2 3, others
    # forward for them, and some links carry twice the packets of the rest.
    sent = Counter((sip, to) for to in range(4) for sip, _ in world.of(f"ucie.sip{to}"))
    ring = [(0, 1), (1, 3), (3, 2), (2, 0)]
    assert {sent[link] for link in ring} == {sent[0, 1]}
    assert {sent[link[::-1]] for link in ring} == {sent[1, 0]}


def test_a_tensor_larger_than_all_rings_is_sent_block_by_block() -> None:
    files = ccl("ring", n_slots=1, slot_size=64)
    assert_ring_sum(all_reduced("ring", 3, (500,), files=files, topology=LONE_CUBE), (500,))


@pytest.mark.slow
@pytest.mark.parametrize("slots", [1, 4, 64])
def test_a_tensor_of_any_size_fits_the_scratch_with_all_queues(slots: int) -> None:
    shape = (100_000,)
    assert_ring_sum(
        all_reduced(
            "ring",
            3,
            shape,
            files=ccl("ring", n_slots=slots, vc_chunk_size=4096),
            topology=LONE_CUBE,
        ),
        shape,
    )
    shape, files = (2, 100_000), ccl("intercube", n_slots=slots, vc_chunk_size=4096)
    assert_intercube_sum(
        all_reduced("intercube", 2, shape, dp=ROW_A_CUBE, files=files, topology=cubes(2, 1)), shape
    )


@pytest.mark.slow
def test_twenty_ranks_reduce_a_tensor_larger_than_a_block() -> None:
    files = ccl("ring", vc_chunk_size=4096)
    assert_ring_sum(all_reduced("ring", 20, (70_000,), files=files, topology=LONE_CUBE), (70_000,))


@pytest.mark.parametrize("sips", [1, 2, 3, 5])
def test_intercube_adds_all_cubes_of_a_ring_of_sips(sips: int) -> None:
    assert_intercube_sum(
        all_reduced("intercube", sips, (2, 7), dp=ROW_A_CUBE, topology=cubes(2, 1)), (2, 7)
    )


@pytest.mark.parametrize("root", [0, 1, 3])
def test_intercube_may_have_its_root_in_any_cube(root: int) -> None:
    files = ccl("intercube", root_cube=root)
    assert_intercube_sum(
        all_reduced("intercube", 2, (4, 5), dp=ROW_A_CUBE, files=files, topology=cubes(2, 2)),
        (4, 5),
    )


def test_intercube_may_have_its_root_in_the_middle_of_a_mesh() -> None:
    files = ccl("intercube", root_cube=4)
    assert_intercube_sum(
        all_reduced("intercube", 2, (9, 10), dp=ROW_A_CUBE, files=files, topology=cubes(3, 3)),
        (9, 10),
    )


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("sips", [4, 9])
def test_intercube_exchanges_over_a_grid_of_sips(sips: int, grid: str) -> None:
    world = all_reduced(
        "intercube", sips, (2, 7), dp=ROW_A_CUBE, topology=cubes(1, 2, **GRIDS[grid])
    )
    assert_intercube_sum(world, (2, 7))


@pytest.mark.parametrize("grid", GRIDS)
def test_intercube_exchanges_over_a_grid_that_is_not_square(grid: str) -> None:
    topology = cubes(
        1, 1, **GRIDS[grid], system__sips__w=3, system__sips__h=2, system__sips__count=6
    )
    assert_intercube_sum(
        all_reduced("intercube", 6, (1, 11), dp=ROW_A_CUBE, topology=topology), (1, 11)
    )


@pytest.mark.parametrize("dtype", [float16, float32, int32], ids=repr)
@pytest.mark.parametrize("kind", ["tcm", "hbm", "sram"])
def test_intercube_adds_every_type_with_queues_in_every_memory(kind: str, dtype: DType) -> None:
    files = ccl("intercube", buffer_kind=kind)
    world = all_reduced(
        "intercube", 2, (2, 9), dtype, dp=ROW_A_CUBE, files=files, topology=cubes(2, 1)
    )
    assert_intercube_sum(world, (2, 9), dtype)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 1000])
def test_intercube_adds_any_number_of_elements_through_small_queues(count: int) -> None:
    files = ccl("intercube", n_slots=1, slot_size=64)
    world = all_reduced(
        "intercube", 3, (2, count), dp=ROW_A_CUBE, files=files, topology=cubes(2, 1)
    )
    assert_intercube_sum(world, (2, count))


def test_every_cube_of_every_rank_holds_the_number_of_cubes_times_the_sum_of_the_ranks() -> None:
    """The acceptance test of the specification: rank r starts with r + 1."""

    def program(rank: int) -> np.ndarray:
        dist.init_process_group("ahbm", algorithm="intercube")
        tensor = torch.full((16, 8), rank + 1, dp=ROW_A_CUBE)
        dist.all_reduce(tensor)
        return tensor.numpy()

    world = simulate(program, 2, topology=cubes(4, 4))
    assert all((values == 16 * (1 + 2)).all() for values in world.returned.values())


def test_two_all_reduces_use_the_same_queues() -> None:
    def program(rank: int) -> np.ndarray:
        dist.init_process_group("ahbm", algorithm="ring")
        tensor = torch.full(5, rank + 1)
        dist.all_reduce(tensor)
        dist.all_reduce(tensor)
        return tensor.numpy()

    world = simulate(program, 2, topology=LONE_CUBE)
    assert all((values == 6).all() for values in world.returned.values())


def test_a_run_without_data_takes_the_same_time() -> None:
    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        tensor = torch.ones(100)
        dist.all_reduce(tensor)
        tensor.numpy()

    with_data, without = (
        simulate(program, 2, topology=LONE_CUBE, data=data) for data in (True, False)
    )
    assert without.records == {
        sip: [replace(record, checksum=0) for record in records]
        for sip, records in with_data.records.items()
    }


@pytest.mark.parametrize("algorithm", ["ring", "pairwise"])
def test_a_barrier_ends_after_the_last_rank_has_called_it(algorithm: str) -> None:
    def program(rank: int) -> tuple[int, int]:
        dist.init_process_group("ahbm", algorithm=algorithm)
        if rank == 0:
            torch.zeros(100_000)
            torch.ahbm.synchronize()
        came_ps = torch.ahbm.elapsed_ps()
        dist.barrier()
        return came_ps, torch.ahbm.elapsed_ps()

    world = simulate(program, 3, topology=LONE_CUBE, data=False)
    assert min(left_ps for _, left_ps in world.returned.values()) > max(
        came_ps for came_ps, _ in world.returned.values()
    )
    assert world.returned[0][0] > 2 * world.returned[1][0]


def test_a_barrier_works_for_intercube_too() -> None:
    def program(rank: int) -> tuple[int, int]:
        dist.init_process_group("ahbm", algorithm="intercube")
        torch.ones(1 + 10_000 * rank)
        torch.ahbm.synchronize()
        came_ps = torch.ahbm.elapsed_ps()
        dist.barrier()
        return came_ps, torch.ahbm.elapsed_ps()

    came_ps, left_ps = zip(
        *simulate(program, 2, topology=cubes(2, 1)).returned.values(), strict=True
    )
    assert min(left_ps) > max(came_ps)
