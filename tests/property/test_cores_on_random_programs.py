"""Random programs on random hardware: both cores report the same, to the last counter."""

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from tests.support.two_modes import differing

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")
PROGRAMS = "tests.support.random_programs"


@pytest.mark.slow
def test_both_cores_report_the_same_of_random_programs() -> None:
    assert differing(PROGRAMS, 0, 20) == []


@pytest.mark.nightly
def test_both_cores_report_the_same_of_many_random_programs() -> None:
    assert differing(PROGRAMS, 20, 400) == []
