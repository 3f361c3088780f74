"""Shards of many messages up a tree of PEs and cubes, over the SIPs, and down again."""

import pytest

from runtime.ccl.reduction import ReduceOp
from runtime.core.dtypes import DType, float32, int32
from tests.support.mock_group import MockGroup, check_all_reduce, system

NUMEL = 60 * 16 + 3
"""61 slots of 64 bytes, where a short message has up to four: on a ring of four the halves of
blocks overlap."""


@pytest.mark.parametrize("neighbours", ["ring_1d", "torus_2d", "mesh_2d_no_wrap"])
@pytest.mark.parametrize("kind", [(int32, ReduceOp.SUM), (float32, ReduceOp.AVG)])
def test_large_shards_of_all_cubes_are_combined_over_every_machine(
    neighbours: str, kind: tuple[DType, ReduceOp]
) -> None:
    group = MockGroup("intercube", system(4, cubes=(2, 2)), topology=neighbours, root_cube=1)
    check_all_reduce(group, kind, NUMEL, by_coordinates=False)


@pytest.mark.parametrize("ranks", [1, 3])
def test_large_shards_of_all_pes_are_combined(ranks: int) -> None:
    group = MockGroup("hierarchical", system(ranks, cubes=(2, 1), pes=3))
    check_all_reduce(group, (float32, ReduceOp.AVG), NUMEL, by_coordinates=False)


def test_a_link_of_the_tree_carries_the_shard_once_in_each_direction() -> None:
    group = MockGroup("hierarchical", system(1, cubes=(1, 1), pes=3))
    group.all_reduce(group.shards((int32, ReduceOp.SUM), NUMEL), ReduceOp.SUM)
    sent = [dict(group.sent[each]) for each in group.coordinates]
    nbytes = 4 * NUMEL
    assert sent[0] == {"pe_child_0": nbytes, "pe_child_1": nbytes}
    assert sent[1] == sent[2] == {"pe_parent": nbytes}
