"""Every stored run gives the stored digest and the stored simulated time.

The other tests of determinism compare runs with each other, so they cannot see a change that is
common to every number of processes, such as another order of simultaneous events. These can.
"""

import pytest

from tests.golden.cases import CASES
from tests.golden.renew import stored

STORED = stored()


def test_every_run_has_a_stored_digest_and_every_stored_digest_a_run():
    assert list(STORED) == list(CASES)


@pytest.mark.golden
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_run_gives_the_digest_and_the_simulated_time_that_are_stored(name: str):
    # Changed on purpose? `python -m tests.golden.renew`, and the reason into the commit.
    assert CASES[name].run() == STORED[name]
