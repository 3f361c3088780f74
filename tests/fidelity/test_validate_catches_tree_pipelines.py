"""Wrong kernels fail exactly the checks of all-reduces over trees concerned."""

from collections.abc import Sequence

import pytest

from runtime.ccl.algorithms import intercube
from runtime.ccl.algorithms.intercube import CubeSystem
from runtime.ccl.pipelines import tree_pipeline
from runtime.ccl.pipelines.message_pipeline import CombinedPieces, RingQueues
from runtime.ccl.pipelines.ring_pipeline import RingPass, pass_round
from runtime.ccl.pipelines.tree_pipeline import TreeNeighbours
from runtime.language.value import Value
from tests.fidelity.chosen_checks import checks, missed_ids
from tests.fidelity.test_validate_catches_collectives import ids

pytestmark = [pytest.mark.fidelity, pytest.mark.slow]


def test_cubes_that_wait_for_each_result_before_the_next_piece_fail_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = intercube.tree_of

    def in_step(system: CubeSystem) -> TreeNeighbours:
        return right(system)._replace(hops=0)

    monkeypatch.setattr(intercube, "tree_of", in_step)
    results = checks("i.pipeline.intercube.")
    assert missed_ids(results) == ids(results, "i.pipeline.intercube.*.ratio")


def test_a_child_that_is_not_added_fails_the_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    right = CombinedPieces._combined

    def without_the_second(self: CombinedPieces, value: Value, others: Sequence[Value]) -> Value:
        return right(self, value, others[:1])

    monkeypatch.setattr(CombinedPieces, "_combined", without_the_second)
    results = checks("i.pipeline.intercube.")
    assert missed_ids(results) == ids(results, "i.pipeline.intercube.*.sums")


def test_results_that_no_root_sends_down_fail_every_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def reduced_only(whole: RingPass, queues: RingQueues) -> None:
        pass_round(whole._replace(gathers=False, sent_to=()), queues)

    monkeypatch.setattr(tree_pipeline, "pass_round", reduced_only)
    results = checks("i.pipeline.hierarchical.")
    # The other positions wait for results: the run has none.
    assert missed_ids(results) == ids(results, "i.pipeline.hierarchical.")
