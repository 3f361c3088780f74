"""The chip of the model against the oracle: the start and the end of every DMA request are equal.

The oracle (`tests/oracle/`) is a second simulation of the same hardware, in plain SimPy, which
shares no code with the model. It covers loads and stores of contiguous blocks in HBM and SRAM of
one SIP. The machines have links with calendars (`noc.flow_control: unlimited`) and HBM with
pseudo channels (`hbm.model: channels`); all other keys that act on such requests are drawn.
"""

from collections.abc import Callable
from functools import cache
from itertools import count
from random import Random
from typing import Any

import pytest

from runtime.core.config_file import value_at, with_values
from tests.oracle.machine import DmaTimes, OracleMachine
from tests.support.chip_transfers import ChipTransfers
from tests.support.random_dma_requests import (
    DmaCase,
    drawn_machine,
    equal_requests,
    random_requests,
    regular_machine,
)
from tests.support.random_topologies import as_text, other, refusals

pytestmark = pytest.mark.slow


def one_request(random: Random) -> DmaCase:
    content = drawn_machine(random)
    return DmaCase(content, random_requests(random, content, pes=1, most=1))


def one_pe(random: Random) -> DmaCase:
    content = drawn_machine(random)
    return DmaCase(content, random_requests(random, content, pes=1, most=12))


def several_pes(random: Random) -> DmaCase:
    content = drawn_machine(random)
    return DmaCase(content, random_requests(random, content, pes=6, most=20))


def regular_cubes(random: Random) -> DmaCase:
    content = regular_machine(random)
    return DmaCase(content, random_requests(random, content, pes=8, most=20))


def equal_pes(random: Random) -> DmaCase:
    content = regular_machine(random)
    return DmaCase(content, equal_requests(random, content))


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
Draws = Callable[[Random], DmaCase]
DRAWS: tuple[Draws, ...] = (one_request, one_pe, several_pes, regular_cubes, equal_pes)
CASES, NIGHTLY_CASES = 12, 200


def by_the_oracle(case: DmaCase) -> list[DmaTimes]:
    return OracleMachine(case.content).times(case.requests)


def by_the_chip(case: DmaCase) -> list[DmaTimes]:
    return ChipTransfers(as_text(case.content), case.requests).times()


@pytest.mark.parametrize("draw", DRAWS)
def test_every_request_starts_and_ends_at_the_same_picosecond(draw: Draws) -> None:
    for seed in range(CASES):
        case = draw(Random(seed))
        assert by_the_chip(case) == by_the_oracle(case), f"{draw.__name__} {seed}"


@pytest.mark.nightly
@pytest.mark.parametrize("draw", DRAWS)
def test_more_machines_have_the_times_of_the_oracle(draw: Draws) -> None:
    for seed in range(CASES, NIGHTLY_CASES):
        case = draw(Random(seed))
        assert by_the_chip(case) == by_the_oracle(case), f"{draw.__name__} {seed}"


@cache
def regular_times(seed: int) -> tuple[DmaCase, list[DmaTimes]]:
    """A case on a regular machine with the times of the oracle."""
    random = Random(seed)
    content = with_values(regular_machine(random), {"sip.cube_mesh.w": 2, "sip.cube_mesh.h": 2})
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
