"""Collectives of tensors on different PEs: what is possible, and what is refused."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from runtime import DPPolicy, torch
from runtime.core.dtypes import int8
from runtime.model.placement import ONE_PE
from tests.support.collectives import contribution
from tests.support.groups import FOUR_PES, ranks
from tests.support.topologies import variant_text
from tests.support.world import simulate

dist = torch.distributed
COLUMNS = DPPolicy(cube="column_wise", pe="column_wise")
TWO_PES, TWO_CUBES = DPPolicy(num_cubes=1, num_pes=2), DPPolicy(num_cubes=2, num_pes=1)


def refused(call: Callable[[], object]) -> str:
    """The error of a call that every rank of two makes in its group."""

    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        call()

    with pytest.raises(ValueError, match=":") as raised:
        simulate(program, 2, topology=FOUR_PES)
    return str(raised.value)


def tensor(*shape: int, dp: DPPolicy = ONE_PE) -> torch.Tensor:
    return torch.empty(shape, dp=dp)


FOUR_PES_ON_A_GRID = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "NE"],
    system__sips__topology="torus_2d",
    system__sips__count=4,
)

ROWS = DPPolicy(cube="row_wise", pe="row_wise")
TWO_CUBES_OF_ROWS = DPPolicy(cube="row_wise", pe="row_wise", num_pes=1)
FLAT = {
    "rows": (ROWS, ROWS),
    "rows to one PE": (ROWS, ONE_PE),
    "one PE to rows": (ONE_PE, ROWS),
    "fewer PEs": (TWO_CUBES_OF_ROWS, ROWS),
}


@pytest.mark.parametrize("case", FLAT)
def test_flat_tensors_need_not_be_placed_alike(case: str) -> None:
    of_part, of_whole = FLAT[case]
    sips, shape = 3, (4, 5)

    def worker(rank: int) -> np.ndarray:
        def zeros() -> torch.Tensor:
            return torch.zeros(shape, dp=of_whole)

        part = torch.from_numpy(contribution(rank, shape), dp=of_part)
        whole = torch.zeros(4 * sips, 5, dp=of_whole)
        dist.all_gather_into_tensor(whole, part)
        listed = [zeros() for _ in range(sips)]
        dist.all_gather(listed, part)
        gathered = [zeros() for _ in range(sips)]
        dist.gather(part, gathered if rank == 1 else None, 1)
        exchanged = torch.zeros(sips * 20, dp=of_part)
        dist.all_to_all_single(exchanged, whole)
        reduced = torch.zeros(shape, dp=of_part)
        dist.reduce_scatter_tensor(reduced, whole)
        from_list = torch.zeros(shape, dp=of_part)
        dist.reduce_scatter(from_list, listed)
        scattered = torch.zeros(shape, dp=of_part)
        dist.scatter(scattered, listed if rank == 2 else None, 2)
        tensors = [whole, *listed, *gathered, exchanged, reduced, from_list, scattered]
        return np.concatenate([each.numpy().reshape(-1) for each in tensors])

    parts = [contribution(rank, (20,)) for rank in range(sips)]
    every, nothing = np.concatenate(parts), np.zeros(60)
    for rank, found in enumerate(ranks(worker, sips)):
        expected = [
            *(every, every),
            every if rank == 1 else nothing,
            np.tile(parts[rank], sips),
            *(sips * parts[rank], sips * parts[rank], parts[rank]),
        ]
        np.testing.assert_array_equal(found, np.concatenate(expected))


@pytest.mark.parametrize(
    "algorithm",
    ["ring", "ring_naive", "mesh", "torus", "tree", "recursive_doubling", "halving_doubling"],
)
def test_a_tensor_that_is_spread_by_default_is_reduced_by_every_algorithm(algorithm: str) -> None:
    def program(rank: int) -> np.ndarray:
        dist.init_process_group("ahbm", algorithm=algorithm)
        even, uneven = (torch.from_numpy(contribution(rank, (n,))) for n in (4096, 6144))
        assert [len(even.shards), len(uneven.shards)] == [4, 4]
        # A window with other elements on each of its PEs.
        for each in (even, uneven.narrow(0, 5, 6100)):
            dist.all_reduce(each)
        return np.concatenate([even.numpy(), uneven.numpy()])

    # Three SIPs have no rows and columns.
    sips, topology = (4, FOUR_PES_ON_A_GRID) if algorithm == "torus" else (3, FOUR_PES)
    world = simulate(program, sips, topology=topology)
    total = sum(contribution(rank, (6144,)) for rank in range(sips))
    for rank, found in world.returned.items():
        expected = contribution(rank, (6144,))
        expected[5:6105] = total[5:6105]
        np.testing.assert_array_equal(found[4096:], expected)
        np.testing.assert_array_equal(
            found[:4096], sum(contribution(each, (4096,)) for each in range(sips))
        )


def test_windows_that_begin_elsewhere_on_every_rank_are_combined_and_gathered_in_place() -> None:
    sips, count = 3, 3000

    def worker(rank: int) -> np.ndarray:
        # As in FSDP: every rank gathers into a tensor of which its own part is a window.
        whole = torch.zeros(sips * count, dp=ROWS)
        own = whole.narrow(0, rank * count, count)
        own.copy_(contribution(rank, (count,)))
        dist.all_gather_into_tensor(whole, own)
        gathered = whole.numpy()
        dist.all_reduce(own)
        dist.broadcast(whole.narrow(0, rank, count), 1)
        return np.concatenate([gathered, whole.numpy()])

    every = np.concatenate([contribution(rank, (count,)) for rank in range(sips)])
    reduced = [every.copy() for _ in range(sips)]
    total = every.reshape(sips, count).sum(axis=0)
    for rank, array in enumerate(reduced):
        array[rank * count : (rank + 1) * count] = total
    sent = reduced[1][1 : 1 + count].copy()
    for rank, array in enumerate(reduced):
        array[rank : rank + count] = sent
    for found, array in zip(ranks(worker, sips), reduced, strict=True):
        np.testing.assert_array_equal(found, np.concatenate([every, array]))


@pytest.mark.parametrize("count", [1, 900])
@pytest.mark.parametrize("as_list", [False, True])
def test_all_to_all_of_uneven_parts(count: int, as_list: bool) -> None:
    sizes = np.array([[2, 0, 1], [3, 1, 0], [1, 4, 2]]) * count

    def worker(rank: int) -> np.ndarray:
        sent, received = [int(n) for n in sizes[rank]], [int(n) for n in sizes[:, rank]]
        source = torch.from_numpy(contribution(rank, (sum(sent), 3), int8))
        target = torch.zeros(sum(received), 3, dtype=torch.int8)
        if as_list:
            dist.all_to_all(list(target.split(received)), list(source.split(sent)))
        else:
            dist.all_to_all_single(target, source, received, sent)
        return target.numpy()

    rows = [contribution(rank, (int(sizes[rank].sum()), 3), int8) for rank in range(3)]
    parts = [np.split(each, np.cumsum(sizes[rank])[:-1]) for rank, each in enumerate(rows)]
    for rank, found in enumerate(ranks(worker, 3)):
        np.testing.assert_array_equal(found, np.concatenate([parts[a][rank] for a in range(3)]))


COPIES = DPPolicy()
REFUSED_PLACEMENTS: dict[str, Callable[[], object]] = {
    "another placement": lambda: dist.all_gather_into_tensor(
        tensor(8, 4, dp=COLUMNS), tensor(4, 4, dp=TWO_PES)
    ),
    "joined columns": lambda: dist.all_gather_into_tensor(
        tensor(4, 8, dp=COLUMNS), tensor(4, 4, dp=COLUMNS)
    ),
    "other axes": lambda: dist.all_gather_into_tensor(
        tensor(8, 2, 8, dp=COLUMNS), tensor(4, 4, 4, dp=COLUMNS)
    ),
    "copies on other PEs": lambda: dist.all_gather_into_tensor(
        tensor(8, dp=TWO_PES), tensor(4, dp=TWO_CUBES)
    ),
    "copies of rows": lambda: dist.all_gather_into_tensor(
        tensor(8, 4, dp=COPIES), tensor(4, 4, dp=ROWS)
    ),
    "scattered columns": lambda: dist.reduce_scatter_tensor(
        tensor(4, 4, dp=ROWS), tensor(8, 4, dp=COLUMNS)
    ),
}


@pytest.mark.parametrize("case", REFUSED_PLACEMENTS)
def test_elements_that_do_not_correspond_in_memory_are_an_error_that_lists_placements(
    case: str,
) -> None:
    text = refused(REFUSED_PLACEMENTS[case])
    assert re.match(r"\w+: the elements of shapes \(\d.* do not correspond in memory; place", text)
    advice = (
        'place both tensors on one PE, with "row_wise", or both alike, with "replicate" or with '
        '"column_wise" and at least two axes'
    )
    assert text.endswith(advice)


def test_columns_from_one_pe_and_copies_of_rows_are_not_exchanged() -> None:
    text = refused(lambda: dist.all_to_all_single(tensor(8, 4, dp=COLUMNS), tensor(8, 4)))
    assert text.startswith("all_to_all_single: shapes (8, 4) and (8, 4), placed by DPPolicy(")
    assert "cannot be cut into parts where they are; place both tensors on one PE" in text
    text = refused(lambda: dist.all_to_all_single(tensor(8, 4, dp=COPIES), tensor(8, 4, dp=ROWS)))
    assert text.startswith("all_to_all_single: output of shape (8, 4) is replicated, DPPolicy(")


def test_a_list_of_all_gather_has_the_placement_of_the_tensor() -> None:
    text = refused(
        lambda: dist.all_gather([tensor(4, 4, dp=COLUMNS), tensor(4, 4)], tensor(4, 4, dp=COLUMNS))
    )
    assert text.startswith(
        "all_gather: tensor_list[1] is not placed like tensor: "
        "DPPolicy(cube='replicate', pe='replicate'"
    )


def test_tensors_in_tiles_cannot_be_divided() -> None:
    def call() -> None:
        tiles = torch.blocked_row_major(2, 2)
        dist.all_gather_into_tensor(
            torch.empty(8, 4, layout=tiles), torch.empty(4, 4, layout=tiles)
        )

    problem = (
        "all_gather_into_tensor: tensors that are stored in tiles cannot be split; omit `layout`"
    )
    assert refused(call) == problem


@pytest.mark.parametrize(
    ("elements", "cubes", "algorithm"),
    [(65_536, 2, "torus"), (65_536, 1, "ring"), (32_768, 2, "halving_doubling")],
)
def test_auto_uses_both_dimensions_of_a_grid_for_large_tensors_on_several_cubes(
    elements: int, cubes: int, algorithm: str
) -> None:
    """The limits are those of the shipped `ccl.yaml`: 128 KiB on two cubes."""

    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="auto")
        spread = DPPolicy(cube="column_wise", pe="column_wise", num_cubes=cubes)
        dist.all_reduce(torch.zeros(1, elements, dtype=torch.float16, dp=spread))

    world = simulate(program, 4, topology=FOUR_PES_ON_A_GRID)
    names = {record.name.split(".")[-1] for _, record in world.of("pe_cpu.collective", "kernel ")}
    assert names == {algorithm}
