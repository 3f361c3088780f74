"""The chip of the model against the oracle: the start and the end of every DMA request are equal.

The oracle (`tests/oracle/`) is a second simulation of the same hardware, in plain SimPy, which
shares no code with the model. It covers loads and stores in HBM and SRAM of one SIP, of contiguous
bytes and of rows at a pitch, by DMAs without kernels and by kernels. The machines have links with
calendars (`noc.flow_control: unlimited`) and HBM with pseudo channels (`hbm.model: channels`); all
other keys that act on such requests are drawn. Requests of kernels are compared until the first
kernel ends: its answer to the host, which the oracle does not model, is on the links then.
"""

import ast
import sys
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from runtime.core.config.config_file import value_at, with_values
from tests.oracle.machine import OracleTimes
from tests.support.oracle_cases import DRAWS, Draws, by_the_chip, by_the_oracle, kernel_times
from tests.support.random_dma_requests import DmaCase, random_requests, regular_machine
from tests.support.random_topologies import other, refusals

pytestmark = pytest.mark.slow

ORACLE = Path(__file__).parents[1] / "oracle"
CASES, KERNEL_CASES, NIGHTLY_CASES = 8, 3, 160
FOR_KEYS = {"sip.cube_mesh.w": 2, "sip.cube_mesh.h": 2, "pe.tcm.bw_gbs": 200.0}
"""A bandwidth with which the port of a TCM is slower than the link of its PE."""
KEYS = (
    "ns_per_mm",
    "packet_bytes",
    "control_bytes",
    "ucie.overhead_ns",
    "ucie.bw_gbs",
    "xbar.overhead_ns",
    "xbar.to_hbm_bw_gbs",
    "hbm.burst_bytes",
    "hbm.num_pcs",
    "hbm.pc_bw_gbs",
    "sip.cube_gap_mm",
    "cube.size_mm.w",
    "cube.size_mm.h",
    "cube.pe_layout.pos_mm.NW",
    "cube.noc.rows",
    "cube.noc.cols",
    "cube.noc.hbm_hole_mm",
    "cube.noc.router_overhead_ns",
    "cube.noc.link_bw_gbs",
    "cube.ucie_pos_mm.E",
    "cube.ucie_pos_mm.N",
    "cube.sram_to_router_bw_gbs",
    "cube.sram.pos_mm",
    "cube.sram.overhead_ns",
    "cube.hbm_ctrl.overhead_ns",
    "cube.hbm_ctrl.latency_ns",
    "cube.hbm_ctrl.efficiency",
    "cube.hbm_ctrl.switch_penalty_ns",
    "pe.to_router_bw_gbs",
    "pe.dma.overhead_ns",
    "pe.dma.channels",
    "pe.dma.outstanding",
    "pe.tcm.bw_gbs",
)
"""Keys that act on the times of the oracle, without those of the numbers of cubes and PEs."""


@pytest.mark.parametrize("draw", DRAWS)
def test_every_request_starts_and_ends_at_the_same_picosecond(draw: Draws) -> None:
    for seed in range(CASES):
        case = draw(Random(seed))
        assert by_the_chip(case) == by_the_oracle(case), f"{draw.__name__} {seed}"


def test_requests_of_kernels_have_the_times_of_the_oracle() -> None:
    for seed in range(KERNEL_CASES):
        by_chip, by_oracle = kernel_times(seed)
        assert by_chip == by_oracle, f"kernels {seed}"


@pytest.mark.nightly
def test_requests_of_more_kernels_have_the_times_of_the_oracle() -> None:
    for seed in range(KERNEL_CASES, NIGHTLY_CASES):
        by_chip, by_oracle = kernel_times(seed)
        assert by_chip == by_oracle, f"kernels {seed}"


@pytest.mark.nightly
@pytest.mark.parametrize("draw", DRAWS)
def test_more_machines_have_the_times_of_the_oracle(draw: Draws) -> None:
    for seed in range(CASES, NIGHTLY_CASES):
        case = draw(Random(seed))
        assert by_the_chip(case) == by_the_oracle(case), f"{draw.__name__} {seed}"


def test_the_oracle_imports_simpy_and_the_standard_library_alone() -> None:
    trees = [ast.parse(path.read_text("utf-8")) for path in ORACLE.glob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    others = {name for name in names if not name.startswith(("simpy", "tests.oracle."))}
    assert len(trees) == 3
    assert others <= sys.stdlib_module_names | {"collections.abc"}


@cache
def regular_times(seed: int) -> tuple[DmaCase, list[OracleTimes]]:
    """A case on a regular machine with the times of the oracle."""
    random = Random(seed)
    content = with_values(regular_machine(random), FOR_KEYS)
    case = DmaCase(content, random_requests(random, content, pes=6, most=20))
    return case, by_the_oracle(case)


def with_another_value(content: dict[str, Any], key: str) -> dict[str, Any]:
    """The first machine with another value of a key which no rule refuses."""
    values = (other(key, value_at(content, key), attempt) for attempt in count())
    changed = (with_values(content, {key: value}) for value in values)
    return next(each for each in changed if not refusals(each))


@pytest.mark.parametrize("key", KEYS)
def test_a_chip_with_another_value_of_a_key_has_other_times(key: str) -> None:
    cases = map(regular_times, range(CASES))
    assert any(
        by_the_chip(case._replace(content=with_another_value(case.content, key))) != times
        for case, times in cases
    )
