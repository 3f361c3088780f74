"""Checks of parts with values of their own: they pass, name the parts, and can fail."""

from typing import Any

import pytest

from kernbench.oracle.checks.systems.own_parts import own_parts
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.model.graph import ChipGraph
from tests.support.topologies import variant_text

SMALL = {"sip__cube_mesh": {"w": 2, "h": 2}, "cube__pe_layout__pe_per_corner": 1}


def file(overrides: dict[str, dict[str, Any]]) -> TopologyFile:
    return TopologyFile.of(variant_text(**SMALL, overrides=overrides))


SLOW = {
    "sip0.cube1.ucie.W": {"bw_gbs": 16, "overhead_ns": 3},
    "cube0.pe1": {"clock_ghz": 0.5, "dma.overhead_ns": 9},
    "cube0.pe2.hbm_ctrl": {"pc_bw_gbs": 4},
    "cube2.router.r0c0->cube2.router.r0c1": {"bw_gbs": 7},
    "sip1.ucie.sip0": {"bw_gbs": 20},
}


def test_accesses_and_engines_have_the_times_of_their_parts() -> None:
    checks = own_parts(file(SLOW))
    assert all(check.passed for check in checks)
    names = {check.id.removeprefix("p.") for check in checks}
    assert names >= {
        "cube1.ucie.W",
        "cube0.pe1",
        "cube0.pe1.pe_gemm",
        "cube0.pe1.pe_math",
        "sip1.cube0.pe2.hbm_ctrl",
        "cube2.router.r0c0->cube2.router.r0c1",
        "sip1.io.ucie.sip0",
    }


def test_accesses_go_round_what_is_down() -> None:
    down = {"cube1.ucie.W": {"down": True}, "cube2.router.r0c0->cube2.router.r0c1": {"down": True}}
    checks = own_parts(file(down))
    assert all(check.passed for check in checks)
    assert {"p.cube0.ucie.E.down", "p.cube2.pe1.round"} <= {check.id for check in checks}


def test_a_machine_of_equal_parts_has_no_such_check() -> None:
    assert own_parts(file({})) == []


def test_a_link_with_the_wrong_bandwidth_fails_its_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChipGraph, "_own_gbs", lambda _graph, _key, _from, _to, gbs: gbs)
    checks = own_parts(file({"sip0.cube1.ucie.W": {"bw_gbs": 16}}))
    assert [check.id for check in checks if not check.passed] == ["p.cube1.ucie.W"]
