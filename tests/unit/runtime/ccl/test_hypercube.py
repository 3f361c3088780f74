from itertools import product

import numpy as np
import pytest

from runtime.ccl.hypercube import HypercubeRank
from runtime.ccl.topologies import hypercube

WORLDS = [(size, root) for size in range(1, 10) for root in range(size)]


@pytest.mark.parametrize(("size", "root"), WORLDS)
def test_the_tree_of_every_root_reaches_each_rank_once(size: int, root: int) -> None:
    reached = {root}
    for sender in range(size):
        neighbours = hypercube(sender, size, 1)
        for direction in HypercubeRank(sender, size).targets(root):
            receiver = neighbours[direction.removeprefix("global_")]
            assert receiver not in reached
            reached.add(receiver)
            # The receiver waits for this direction: the two ends of a bit have one name.
            assert HypercubeRank(receiver, size).source(root) == direction
    assert reached == set(range(size))
    assert HypercubeRank(root, size).source(root) is None


@pytest.mark.parametrize("size", range(2, 10))
def test_a_tree_of_p_ranks_has_at_most_log2_p_steps_and_two_for_ranks_that_fold(size: int) -> None:
    for root, rank in product(range(size), repeat=2):
        depth, at = 0, rank
        while (source := HypercubeRank(at, size).source(root)) is not None:
            at, depth = hypercube(at, size, 1)[source.removeprefix("global_")], depth + 1
        assert at == root
        assert depth <= int(np.log2(size)) + 2 * (size & (size - 1) != 0)


def test_corners_and_the_ranks_that_fold_onto_them() -> None:
    # Six ranks: corners 0 to 3, rank 4 folds onto 0, rank 5 onto 1.
    assert HypercubeRank(1, 6).folded == 5
    assert HypercubeRank(2, 6).folded is None
    assert (HypercubeRank(5, 6).is_corner, HypercubeRank(5, 6).corner) == (False, 1)
    assert HypercubeRank(0, 6).all_ranks == [0, 4, 1, 5, 2, 3]
    assert HypercubeRank(2, 6).corners_like(2, 1) == [2, 3]
    assert HypercubeRank(2, 6).corners_like(3, 0) == [3]
