"""Collectives that are repeated leave what simulated ones leave, to the last counter."""

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from runtime.wire.environment import FOLD
from tests.support.random_exchanges import random_exchanges
from tests.support.runs_left import left

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="launches are repeated by the core in C")


def check(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    repeated = kernels = 0
    for seed in seeds:
        monkeypatch.setenv(FOLD, "0")
        simulated = random_exchanges(seed)
        monkeypatch.setenv(FOLD, "1")
        folded = random_exchanges(seed)
        assert left(folded) == left(simulated), f"seed {seed}"
        repeated += folded.done.repeated_kernels
        kernels += folded.done.kernels
    # Else the comparison is one of a run with itself. Most of these collectives begin at different
    # times, or beside other commands.
    assert repeated > kernels / 20, f"{repeated} of {kernels} kernels were repeated"


def test_random_collectives_that_are_repeated_are_those_that_are_simulated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check(range(31, 34), monkeypatch)


@pytest.mark.nightly
def test_many_random_collectives_that_are_repeated_are_those_that_are_simulated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check(range(34, 400), monkeypatch)
