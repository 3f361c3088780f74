"""Routers with credits in both modes: every packet, counter and stalled packet."""

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from tests.support.two_modes import differing

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")
MACHINES = "tests.support.credited_machines"


@pytest.mark.slow
def test_machines_behave_alike_in_both_modes() -> None:
    assert differing(MACHINES, 0, 40) == []


@pytest.mark.nightly
def test_many_machines_behave_alike_in_both_modes() -> None:
    assert differing(MACHINES, 40, 600) == []
