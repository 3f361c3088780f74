"""Every key of `topology.yaml` acts alike on both cores: one at a time, and all of them drawn."""

import json
from functools import cache

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from runtime.model.schema.draws import Fixed
from tests.support.changed_keys import drawn_keys
from tests.support.random_topologies import DRAWS
from tests.support.two_modes import printed

both_cores = pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")

MACHINES = 4
WITHOUT_EFFECT = {
    "host.fallback_ns_per_element": "acts on operators of PyTorch only, which no core computes",
    "host.fallback_overhead_ns": "acts on operators of PyTorch only, which no core computes",
    "cube.sram_mb": "a capacity: it acts on a program that fills SRAM, which ends the program",
    "pe.math.registers": "a capacity: a chain that needs more registers is refused",
}
"""Keys whose change changes no run here, and why."""

Report = dict[str, str]


@cache
def reports() -> tuple[list[Report], list[Report]]:
    """All runs by the reference, and by the compiled core: two processes at a time."""
    reference, compiled = (
        [json.loads(line) for line in lines]
        for lines in printed("tests.support.changed_keys", MACHINES)
    )
    return reference, compiled


def test_every_leaf_of_the_schema_states_its_range() -> None:
    assert [key for key, draw in DRAWS.items() if draw is None] == []


def test_a_key_that_is_not_drawn_states_its_reason() -> None:
    fixed = {key: draw.reason for key, draw in DRAWS.items() if isinstance(draw, Fixed)}
    assert all(fixed.values())
    assert {key.partition(".")[0] for key in fixed} == {"impl", "jitter", "version"}


@both_cores
@pytest.mark.slow
@pytest.mark.xdist_group("keys")
def test_both_cores_report_the_same_whichever_keys_change() -> None:
    reference, compiled = reports()
    assert [each["key"] for each in reference if each["key"]] == drawn_keys()
    differing = [
        (expected["key"] or expected["name"], expected["result"], found["result"])
        for expected, found in zip(reference, compiled, strict=True)
        if expected != found
    ]
    assert differing == []


@both_cores
@pytest.mark.slow
@pytest.mark.xdist_group("keys")
def test_every_machine_runs_to_its_end() -> None:
    errors = [each["key"] + each["error"] for each in reports()[1] if each["error"]]
    assert errors == []


@both_cores
@pytest.mark.slow
@pytest.mark.xdist_group("keys")
def test_every_key_changes_a_run() -> None:
    compiled = reports()[1]
    before = {each["name"]: each["result"] for each in compiled if not each["key"]}
    changed = [each for each in compiled if each["key"]]
    silent = [each["key"] for each in changed if each["result"] == before[each["name"]]]
    assert sorted(silent) == sorted(WITHOUT_EFFECT)
