"""Machines whose parts differ: one result for both cores and every partition, folded or not."""

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from runtime.wire.environment import FOLD
from tests.property.test_chips_on_any_lps import (
    ALGORITHMS,
    DEALS,
    LONE_CUBE,
    collectives,
    essence,
)
from tests.support import random_launches
from tests.support.lps import reports_of
from tests.support.random_overrides import with_random_overrides
from tests.support.random_programs import random_run
from tests.support.runs_left import left
from tests.support.topologies import variant_text
from tests.support.two_modes import differing
from tests.support.world import Simulation

FABRICS = (
    {},
    {"system__sips__fabric": "switch"},
    {"system__sips__topology": "torus_2d", "system__sips__count": 4},
    {"noc__flow_control": "credits"},
)


def check_folds(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = repeated = kernels = 0
    for seed in seeds:
        monkeypatch.setenv(FOLD, "0")
        plain = random_launches.random_run(seed, differ=True)
        monkeypatch.setenv(FOLD, "1")
        folded = random_launches.random_run(seed, differ=True)
        assert left(folded) == left(plain), f"seed {seed}"
        if isinstance(folded, Simulation):
            listed += folded.done.listed_kernels
            repeated += folded.done.repeated_kernels
            kernels += folded.done.kernels
    # Else the comparison is one of a run with itself.
    assert listed > kernels / 4, f"{listed} of {kernels} kernels ran from lists"
    assert not IS_COMPILED or repeated > kernels / 200, f"{repeated} of {kernels} were repeated"


def test_launches_on_unequal_pes_are_folded_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    check_folds(range(1000, 1005), monkeypatch)


@pytest.mark.nightly
def test_many_launches_on_unequal_pes_are_folded_to_the_bit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_folds(range(1005, 1150), monkeypatch)


@pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")
@pytest.mark.slow
def test_both_cores_report_the_same_of_unequal_parts() -> None:
    assert differing("tests.support.random_parts", 0, 5) == []


@pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")
@pytest.mark.nightly
def test_both_cores_report_the_same_of_many_unequal_parts() -> None:
    assert differing("tests.support.random_parts", 5, 65) == []


def test_programs_on_unequal_parts_end_as_those_on_equal_ones() -> None:
    for seed in range(2000, 2004):
        own, equal = random_run(seed, differ=True), random_run(seed)
        assert all(report.finished and not report.broken_law for report in own.done.sips)
        assert [each.outcome for each in own.done.sips] == [
            each.outcome for each in equal.done.sips
        ]


def check_partitions(seeds: range) -> None:
    for seed in seeds:
        text = variant_text(**LONE_CUBE, **FABRICS[seed % len(FABRICS)])
        topology = with_random_overrides(text, seed, 4)
        program = collectives((5, 900)[seed % 2], ALGORITHMS[seed % len(ALGORITHMS)])
        alone = essence(reports_of(program, DEALS[0], topology, seed=0))
        for deal in DEALS[1:]:
            assert essence(reports_of(program, deal, topology, seed=seed)) == alone, f"seed {seed}"


@pytest.mark.slow
def test_unequal_sips_and_links_do_not_depend_on_the_partition() -> None:
    check_partitions(range(2))


@pytest.mark.nightly
def test_many_unequal_sips_and_links_do_not_depend_on_the_partition() -> None:
    check_partitions(range(2, 80))


@pytest.mark.slow
def test_credits_round_a_ring_that_is_cut_do_not_depend_on_the_partition() -> None:
    cut = {"sip0.ucie.sip1": {"down": True}}
    topology = variant_text(**LONE_CUBE, noc__flow_control="credits", overrides=cut)
    program = collectives(900, "ring")
    alone = essence(reports_of(program, DEALS[0], topology, seed=0))
    for deal in DEALS[1:]:
        assert essence(reports_of(program, deal, topology, seed=3)) == alone
