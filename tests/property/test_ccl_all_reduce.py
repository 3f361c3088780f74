"""All-reduce kernels in the mock runtime: right for every world, size, queue and order of turns.

A deadlock would raise `IpcqDeadlock`. At the end all rings must be empty.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.ccl.exchange import chunk_bounds
from runtime.ccl.reduction import ReduceOp
from runtime.core.dtypes import int32
from tests.support.mock_group import MockGroup, check_all_reduce, system
from tests.support.reductions import KINDS

RANKS = (1, 2, 3, 4, 5, 8, 9)
numels, slots, seeds = st.integers(1, 150), st.integers(1, 4), st.integers(0, 1000)
slot_sizes = st.sampled_from([64, 128, 256])
kinds = st.sampled_from(KINDS)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(
    "algorithm", ["ring", "ring_naive", "mesh", "tree", "recursive_doubling", "halving_doubling"]
)
@settings(deadline=None, max_examples=4)
@given(numel=numels, n_slots=slots, slot_size=slot_sizes, kind=kinds, seed=seeds)
def test_every_rank_receives_the_reduction_with_the_same_bits(
    algorithm, ranks, numel, n_slots, slot_size, kind, seed
) -> None:
    group = MockGroup(algorithm, system(ranks), n_slots=n_slots, slot_size=slot_size)
    check_all_reduce(group, kind, numel, seed)


@settings(deadline=None, max_examples=5)
@given(st.integers(1, 6), numels, slots, kinds, seeds)
def test_a_ring_joins_pes_at_equal_coordinates(ranks, numel, n_slots, kind, seed) -> None:
    check_all_reduce(
        MockGroup("ring", system(ranks, cubes=(2, 1)), n_slots=n_slots), kind, numel, seed
    )


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(st.tuples(st.integers(1, 4), st.integers(1, 3)), st.booleans(), numels, slots, kinds, seeds)
def test_mesh_works_on_any_grid_with_or_without_wrap(
    grid, wraps, numel, n_slots, kind, seed
) -> None:
    topology = system(grid[0] * grid[1], grid=grid, wraps=wraps)
    neighbours = "torus_2d" if wraps else "mesh_2d_no_wrap"
    check_all_reduce(
        MockGroup("mesh", topology, n_slots=n_slots, topology=neighbours), kind, numel, seed
    )


@settings(deadline=None, max_examples=12)
@given(
    grid=st.tuples(st.integers(2, 4), st.integers(2, 3)),
    wraps=st.booleans(),
    cubes=st.integers(1, 2),
    numel=numels,
    n_slots=st.sampled_from([1, 2, 3, 16]),
    kind=kinds,
    seed=seeds,
)
def test_torus_works_on_any_grid_with_pes_that_begin_with_either_dimension(
    grid, wraps, cubes, numel, n_slots, kind, seed
) -> None:
    # PEs begin with the rows or with the columns, in either direction. Two cubes with two PEs each
    # have three of the four combinations.
    topology = system(grid[0] * grid[1], grid=grid, wraps=wraps, cubes=(cubes, 1), pes=4 // cubes)
    check_all_reduce(MockGroup("torus", topology, n_slots=n_slots), kind, numel, seed)


cube_meshes = st.tuples(st.integers(1, 3), st.integers(1, 2))


@pytest.mark.slow
@settings(deadline=None, max_examples=12)
@given(
    cubes=cube_meshes,
    pes=st.integers(1, 4),
    ranks=st.integers(1, 3),
    numel=numels,
    n_slots=slots,
    kind=kinds,
    data=st.data(),
)
def test_hierarchical_gives_every_pe_the_reduction_over_all_pes(
    cubes, pes, ranks, numel, n_slots, kind, data
) -> None:
    root = data.draw(st.none() | st.integers(0, cubes[0] * cubes[1] - 1), label="root cube")
    group = MockGroup(
        "hierarchical", system(ranks, cubes=cubes, pes=pes), n_slots=n_slots, root_cube=root
    )
    check_all_reduce(group, kind, numel, data.draw(seeds), by_coordinates=False)


@pytest.mark.parametrize("ranks", RANKS)
@settings(deadline=None, max_examples=2)
@given(numel=numels, n_slots=slots, kind=kinds, seed=seeds)
def test_hierarchical_works_with_any_number_of_ranks(ranks, numel, n_slots, kind, seed) -> None:
    group = MockGroup("hierarchical", system(ranks, cubes=(2, 1), pes=2), n_slots=n_slots)
    check_all_reduce(group, kind, numel, seed, by_coordinates=False)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(
    sips=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    cubes=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    wraps=st.booleans(),
    numel=numels,
    n_slots=slots,
    kind=kinds,
    data=st.data(),
)
def test_intercube_gives_every_cube_the_reduction_over_all_cubes(
    sips, cubes, wraps, numel, n_slots, kind, data
) -> None:
    root = data.draw(st.none() | st.integers(0, cubes[0] * cubes[1] - 1), label="root cube")
    topology = system(sips[0] * sips[1], cubes=cubes, grid=sips, wraps=wraps)
    group = MockGroup("intercube", topology, n_slots=n_slots, root_cube=root)
    check_all_reduce(group, kind, numel, data.draw(seeds), by_coordinates=False)


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 6), st.integers(1, 300))
def test_a_ring_sends_the_least_bytes_of_any_all_reduce(ranks: int, numel: int) -> None:
    group = MockGroup("ring", system(ranks), n_slots=1000)
    group.all_reduce(group.shards((int32, ReduceOp.SUM), numel), ReduceOp.SUM)
    # Each chunk makes n - 1 steps along the ring, twice: 2 (n - 1) / n of the bytes for each of
    # n ranks.
    assert sum(map(group.sent_by, range(ranks))) == 2 * (ranks - 1) * numel * 4


@given(st.integers(0, 1000), st.integers(1, 50))
def test_chunks_cover_all_elements_once_and_differ_by_one_at_most(numel: int, chunks: int) -> None:
    bounds = chunk_bounds(numel, chunks)
    assert [start for start, _ in bounds] == [0, *(stop for _, stop in bounds[:-1])]
    assert bounds[-1][1] == numel
    assert {stop - start for start, stop in bounds} <= {numel // chunks, numel // chunks + 1}
