"""The chip of the model against the oracle: the start and the end of every DMA request are equal.

The oracle (`tests/oracle/`) is a second simulation of the same hardware, in plain SimPy, which
shares no code with the model. It covers loads and stores of contiguous blocks in HBM and SRAM of
one SIP. The machines have links with calendars (`noc.flow_control: unlimited`) and HBM with
pseudo channels (`hbm.model: channels`); all other keys that act on such requests are drawn.
"""

from collections.abc import Callable
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
from tests.support.random_topologies import as_text, other

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


Draws = Callable[[Random], DmaCase]
DRAWS: tuple[Draws, ...] = (one_request, one_pe, several_pes, regular_cubes, equal_pes)
CASES = 12


def by_the_oracle(case: DmaCase) -> list[DmaTimes]:
    return OracleMachine(case.content).times(case.requests)


def by_the_chip(case: DmaCase) -> list[DmaTimes]:
    return ChipTransfers(as_text(case.content), case.requests).times()


@pytest.mark.parametrize("draw", DRAWS)
def test_every_request_starts_and_ends_at_the_same_picosecond(draw: Draws) -> None:
    for seed in range(CASES):
        case = draw(Random(seed))
        assert by_the_chip(case) == by_the_oracle(case), f"{draw.__name__} {seed}"
