"""Cases on which the chip and the oracle are compared, and the times of both."""

from collections.abc import Callable
from itertools import chain
from random import Random

from runtime.core.config.config_file import with_values
from tests.oracle.machine import OracleMachine, OracleTimes
from tests.support.chip_transfers import ChipTransfers
from tests.support.kernel_moves import run_kernels
from tests.support.random_dma_requests import (
    DmaCase,
    coarse_machine,
    drawn_machine,
    equal_requests,
    random_kernels,
    random_requests,
    regular_machine,
)
from tests.support.random_topologies import as_text


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


def coarse_times(random: Random) -> DmaCase:
    content = coarse_machine(random)
    requests = random_requests(random, content, pes=8, most=30)
    # Whole bursts, at times that are equal or differ by whole nanoseconds.
    whole = [
        (time_ps // 1000 % 5 * 1000, each._replace(offset=each.offset // 64 * 64))
        for time_ps, each in requests
    ]
    return DmaCase(content, whole)


Draws = Callable[[Random], DmaCase]
DRAWS: tuple[Draws, ...] = (
    one_request,
    one_pe,
    several_pes,
    regular_cubes,
    equal_pes,
    coarse_times,
)
FOR_KERNELS = {"sip.io_chiplet.io_cpu.launch_margin_ns": 500.0}
"""A margin with which no command of a launch is on the links when the kernels start."""


def by_the_oracle(case: DmaCase) -> list[OracleTimes]:
    """The times of all requests."""
    return OracleMachine(case.content).times(case.requests)


def by_the_chip(case: DmaCase) -> list[OracleTimes]:
    """The times of all requests."""
    return ChipTransfers(as_text(case.content), case.requests).times()


def kernel_times(seed: int) -> tuple[list[OracleTimes], list[OracleTimes]]:
    """The times of the requests of kernels on a drawn machine, by the chip and by the oracle."""
    random = Random(seed)
    content = with_values((drawn_machine, regular_machine)[seed % 2](random), FOR_KERNELS)
    run = run_kernels(as_text(content), random_kernels(random, content, most=4))
    by_oracle = OracleMachine(content).kernel_times(run.start_ps, run.commands)
    pairs = zip(chain(*run.times), chain(*by_oracle), strict=True)
    compared = [(chip, oracle) for chip, oracle in pairs if chip.end_ps <= run.first_end_ps]
    assert compared
    return [chip for chip, _ in compared], [oracle for _, oracle in compared]
