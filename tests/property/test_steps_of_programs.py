"""The steps of a program tile it: between them a program takes no simulated time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.random_programs import PROGRAMS, random_run
from tests.support.recorded_programs import programs_of


def gaps(seed: int) -> list[str]:
    """Gaps between the steps of programs in the run of a seed."""
    world = random_run(seed)
    recorded = {sip: programs_of(world, sip) for sip in world.texts}
    assert any(program.steps for programs in recorded.values() for program in programs)
    return [
        f"SIP {sip} program {program.program['program']}: {gap}"
        for sip, programs in recorded.items()
        for program in programs
        for gap in program.gaps
    ]


# One of each kind; the seed also draws the hardware.
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(len(PROGRAMS)))
def test_the_steps_of_every_program_tile_it(seed: int) -> None:
    assert gaps(seed) == []


@pytest.mark.nightly
@given(st.integers(1000, 1_000_000))
def test_the_steps_of_every_program_of_many_runs_tile_it(seed: int) -> None:
    assert gaps(seed) == []
