"""The operations of random programs name the calls that issued them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import random_launches, random_programs
from tests.support.issued_operations import misattributed
from tests.support.random_exchanges import random_exchanges
from tests.support.random_programs import PROGRAMS
from tests.support.world import Simulation


# One of each kind; the seed also draws the hardware.
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(len(PROGRAMS)))
def test_the_operations_of_every_program_name_their_calls(seed: int) -> None:
    assert misattributed(random_programs.random_run(seed)) == []


@pytest.mark.nightly
@given(st.integers(1000, 1_000_000))
def test_the_operations_of_many_programs_name_their_calls(seed: int) -> None:
    assert misattributed(random_programs.random_run(seed)) == []


@pytest.mark.nightly
def test_the_operations_of_launches_that_repeat_name_their_calls() -> None:
    checked = 0
    for seed in range(8, 28):
        for world in (random_launches.random_run(seed), random_exchanges(seed)):
            # A launch may fail, and half of the runs are not recorded.
            if isinstance(world, Simulation) and world.rows:
                assert misattributed(world) == [], f"seed {seed}"
                checked += world.done.repeated_kernels > 0
    assert checked > 3
