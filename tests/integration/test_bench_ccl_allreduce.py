"""The bench `ccl-allreduce`: the sum of each algorithm, and the count of wrong sums."""

import pytest

from kernbench.benches.ccl_allreduce import ccl_allreduce
from runtime.ccl.algorithms import hierarchical
from runtime.core.bench_registry import BenchOutcome
from runtime.language import tl
from runtime.language.value import Pointer
from tests.support.groups import FOUR_PES
from tests.support.world import simulate


def outcome(algorithm: str) -> BenchOutcome:
    world = simulate(
        lambda rank: ccl_allreduce(rank, algorithm=algorithm, max_bytes=256), 2, topology=FOUR_PES
    )
    return world.returned[1]


@pytest.mark.parametrize("algorithm", ["intercube", "hierarchical", "tree", "auto"])
def test_every_cube_ends_with_the_sum_that_the_algorithm_promises(algorithm: str) -> None:
    found = outcome(algorithm)
    assert (found.ok, found.wrong) == (2, 0)
    assert [row.wrong for row in found.rows] == [0]


def test_a_cube_with_one_wrong_pe_is_a_wrong_cube(monkeypatch: pytest.MonkeyPatch) -> None:
    right = hierarchical.all_reduce

    def spoiled(shard: Pointer, numel: int, *rest: object) -> None:
        right(shard, numel, *rest)  # pyright: ignore[reportArgumentType] - passed on as they came
        if (tl.program_id(0), tl.program_id(1)) == (1, 1):
            tl.store(shard, tl.zeros(1, shard.dtype))

    monkeypatch.setattr(hierarchical, "all_reduce", spoiled)
    found = outcome("hierarchical")
    assert (found.ok, found.wrong) == (1, 1)
    assert [row.wrong for row in found.rows] == [1]
