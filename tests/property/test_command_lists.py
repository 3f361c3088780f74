"""Kernels that run from command lists, and launches that are repeated, leave what their functions
leave, to the last counter.
"""

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from runtime.wire.environment import FOLD
from tests.support.random_launches import random_run
from tests.support.runs_left import left
from tests.support.world import Simulation


def check(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = repeated = kernels = 0
    for seed in seeds:
        monkeypatch.setenv(FOLD, "0")
        of_functions = random_run(seed)
        monkeypatch.setenv(FOLD, "1")
        of_lists = random_run(seed)
        assert left(of_lists) == left(of_functions), f"seed {seed}"
        if isinstance(of_lists, Simulation):
            listed += of_lists.done.listed_kernels
            repeated += of_lists.done.repeated_kernels
            kernels += of_lists.done.kernels
    # Else the comparison is one of a run with itself. Most of these launches have messages, others
    # beside them, or kernels that read their numbers.
    assert listed > kernels / 4, f"{listed} of {kernels} kernels ran from lists"
    assert not IS_COMPILED or repeated > kernels / 60, f"{repeated} of {kernels} were repeated"


def test_random_launches_from_lists_are_those_of_their_functions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check(range(12), monkeypatch)


@pytest.mark.nightly
def test_many_random_launches_from_lists_are_those_of_their_functions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check(range(12, 500), monkeypatch)
