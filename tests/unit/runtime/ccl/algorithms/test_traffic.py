"""Every PE sends the bytes per direction that the docstring of its all-reduce kernel states."""

from collections.abc import Callable

import pytest

from runtime.ccl.algorithms import (
    halving_doubling,
    hierarchical,
    intercube,
    mesh,
    recursive_doubling,
    ring,
    ring_naive,
    torus,
    tree,
)
from runtime.ccl.reduction import ReduceOp
from runtime.core.dtypes import float32, int32
from tests.support.mock_group import MockGroup, check_all_reduce, system

NUMEL = 2 * 9 * 8 * 5
"""A multiple of every world size below, so that all chunks have equal sizes."""
NBYTES = 4 * NUMEL
RANKS = (1, 2, 3, 4, 5, 8, 9)

Sent = dict[str, int]


def of_ring(rank: int, ranks: int) -> Sent:
    return {"global_E": 2 * (ranks - 1) * NBYTES // ranks}


def of_ring_naive(rank: int, ranks: int) -> Sent:
    return {"global_E": (ranks - 1) * NBYTES}


def of_tree(rank: int, ranks: int) -> Sent:
    parent = {"global_parent": NBYTES} if rank else {}
    return parent | {
        f"global_child_{side}": NBYTES for side in (0, 1) if 2 * rank + 1 + side < ranks
    }


def inside(ranks: int) -> int:
    """The ranks of the hypercube."""
    return max(power for power in (1, 2, 4, 8) if power <= ranks)


def of_cube(rank: int, ranks: int, by_bit: Callable[[int], int]) -> Sent:
    corners = inside(ranks)
    if rank >= corners:
        return {"global_fold": NBYTES}
    fold = {"global_fold": NBYTES} if rank + corners < ranks else {}
    return fold | {f"global_bit_{bit}": by_bit(bit) for bit in range(corners.bit_length() - 1)}


def of_recursive_doubling(rank: int, ranks: int) -> Sent:
    return of_cube(rank, ranks, lambda bit: NBYTES)


def of_halving_doubling(rank: int, ranks: int) -> Sent:
    # Half of the block to the nearest rank, a quarter in the next dimension: once in the
    # reduce-scatter and once in the all-gather.
    return of_cube(rank, ranks, lambda bit: 2 * NBYTES // 2 ** (bit + 1))


SENT = {
    "ring": of_ring,
    "ring_naive": of_ring_naive,
    "tree": of_tree,
    "recursive_doubling": of_recursive_doubling,
    "halving_doubling": of_halving_doubling,
}


def sent(group: MockGroup, numel: int = NUMEL) -> list[Sent]:
    """The bytes that every PE sends in each direction, in the order of ranks, cubes and PEs."""
    group.all_reduce(group.shards((int32, ReduceOp.SUM), numel), ReduceOp.SUM)
    return [group.sent[pe] for pe in group.coordinates]


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("algorithm", SENT)
def test_a_rank_sends_the_bytes_of_the_formula(algorithm: str, ranks: int) -> None:
    expected = [SENT[algorithm](rank, ranks) if ranks > 1 else {} for rank in range(ranks)]
    assert sent(MockGroup(algorithm, system(ranks), n_slots=10, slot_size=4096)) == expected


def on_lines(col: int, row: int, w: int, h: int) -> Sent:
    """The block on every link of the row, a chunk of it on every link of the column, in both
    directions.
    """
    across = {
        direction: NBYTES
        for direction, neighbour in (("global_E", col + 1), ("global_W", col - 1))
        if 0 <= neighbour < w
    }
    along = {
        direction: NBYTES // w
        for direction, neighbour in (("global_S", row + 1), ("global_N", row - 1))
        if 0 <= neighbour < h
    }
    return across | along


def on_rings(col: int, row: int, w: int, h: int) -> Sent:
    """2 (k - 1) / k of the block round the row, and of a chunk of it round the column, in one
    direction.
    """
    across, along = 2 * (w - 1) * NBYTES // w, 2 * (h - 1) * (NBYTES // w) // h
    sent_bytes = {"global_E": across, "global_S": along}
    return {direction: nbytes for direction, nbytes in sent_bytes.items() if nbytes}


@pytest.mark.parametrize("neighbours", ["mesh_2d_no_wrap", "torus_2d"])
@pytest.mark.parametrize(("w", "h"), [(1, 1), (2, 1), (1, 3), (2, 2), (3, 2), (3, 3)])
def test_a_rank_of_a_mesh_sends_the_block_along_its_row_and_a_chunk_along_its_column(
    neighbours: str, w: int, h: int
) -> None:
    group = MockGroup(
        "mesh", system(w * h, grid=(w, h)), n_slots=10, slot_size=4096, topology=neighbours
    )
    expected = on_lines if neighbours == "mesh_2d_no_wrap" else on_rings
    assert sent(group) == [expected(rank % w, rank // w, w, h) for rank in range(w * h)]


def on_torus(pe: int, w: int, h: int) -> Sent:
    """2 (k - 1) / k of the shard round the first dimension, and of a chunk of it round the other
    one; PEs 1 and 3 begin with the columns, PEs 2 and 3 send to lower positions.
    """
    rows, columns = ("global_W", "global_N") if pe >= 2 else ("global_E", "global_S")
    (first, k), (second, j) = ((columns, h), (rows, w)) if pe % 2 else ((rows, w), (columns, h))
    sent_bytes = {first: 2 * (k - 1) * NBYTES // k, second: 2 * (j - 1) * (NBYTES // k) // j}
    return {direction: nbytes for direction, nbytes in sent_bytes.items() if nbytes}


@pytest.mark.parametrize(("w", "h"), [(1, 1), (2, 2), (3, 2), (3, 3)])
def test_pes_of_a_torus_divide_dimensions_and_directions(w: int, h: int) -> None:
    group = MockGroup("torus", system(w * h, grid=(w, h), pes=4), n_slots=10, slot_size=4096)
    assert sent(group) == w * h * [on_torus(pe, w, h) for pe in range(4)]
    # No all-reduce sends less: 2 (p - 1) n for each of the four PEs, all ranks together.
    assert sum(map(group.sent_by, range(w * h))) == 4 * 2 * (w * h - 1) * NBYTES


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_hierarchical_sends_a_block_up_and_down_in_a_sip_and_as_a_ring_between_sips(
    ranks: int,
) -> None:
    group = MockGroup(
        "hierarchical", system(ranks, cubes=(3, 1), pes=3), n_slots=10, slot_size=4096
    )
    between = {"global_E": 2 * (ranks - 1) * NBYTES // ranks} if ranks > 1 else {}
    # The last of the three cubes is the root.
    leaders = {0: {"E": NBYTES}, 1: {"E": NBYTES, "W": NBYTES}, 2: {"W": NBYTES} | between}
    tree_of_pes = {
        0: {"pe_child_0": NBYTES, "pe_child_1": NBYTES},
        1: {"pe_parent": NBYTES},
        2: {"pe_parent": NBYTES},
    }
    expected = {
        (cube, pe): tree_of_pes[pe] | (leaders[cube] if pe == 0 else {})
        for cube in range(3)
        for pe in range(3)
    }
    assert sent(group) == ranks * list(expected.values())


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("numel", [1, 7, 151])
def test_halving_and_doubling_sends_no_more_in_total_if_chunks_are_uneven(
    ranks: int, numel: int
) -> None:
    group, corners = MockGroup("halving_doubling", system(ranks), n_slots=1), inside(ranks)
    sent(group, numel)
    # 2 (P - 1) / P of n for each of P ranks, and n in both directions for each of the others.
    assert sum(map(group.sent_by, range(ranks))) == 2 * (corners - 1 + ranks - corners) * 4 * numel


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["mesh_2d_no_wrap", "torus_2d"])
@pytest.mark.parametrize("ranks", [2, 6, 9])
def test_the_values_of_mesh_fit_the_scratch_with_queues_of_any_size(
    neighbours: str, ranks: int
) -> None:
    check_blocks_limited_by_scratch("mesh", ranks, topology=neighbours)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3, 9])
@pytest.mark.parametrize("algorithm", [*SENT, "hierarchical"])
def test_the_values_of_every_kernel_fit_the_scratch_with_queues_of_any_size(
    algorithm: str, ranks: int
) -> None:
    check_blocks_limited_by_scratch(algorithm, ranks)


def check_blocks_limited_by_scratch(algorithm: str, ranks: int, **config: str) -> None:
    """An all-reduce of two blocks and a remainder; the scratch limits a block, as the rings are far
    larger.
    """
    cubes = {"cubes": (3, 3), "pes": 3} if algorithm == "hierarchical" and ranks < 4 else {}
    group = MockGroup(
        algorithm,
        system(ranks, **cubes),
        slot_size=1 << 20,
        buffer_kind="hbm",
        **config | ({"root_cube": 4} if cubes else {}),
    )
    block = group.module.arguments(group.groups[0], 4)[-1]
    check_all_reduce(
        group, (float32, ReduceOp.AVG), 2 * block + 5, by_coordinates=algorithm != "hierarchical"
    )


@pytest.mark.parametrize(
    "module",
    [
        ring_naive,
        mesh,
        torus,
        tree,
        recursive_doubling,
        halving_doubling,
        hierarchical,
        intercube,
        ring,
    ],
)
def test_a_name_of_a_collective_in_a_module_is_that_of_its_kernel(module) -> None:
    collectives = {
        "all_reduce",
        "reduce",
        "broadcast",
        "all_gather",
        "reduce_scatter_tensor",
        "all_to_all_single",
    }
    kernels = {name: value for name, value in vars(module).items() if name in collectives}
    assert "all_reduce" in kernels
    assert {value.__module__ for value in kernels.values()} == {module.__name__}
