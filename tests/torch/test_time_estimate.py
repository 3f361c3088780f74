"""The estimator of PyTorch reports the time that a collective takes in the simulation."""

import re

import pytest

from tests.torch.conftest import Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(300)]


def test_the_estimate_is_the_time_of_the_collective_and_no_tensor_changes(run: Runs):
    lines = re.findall(
        r"^= (\S+) (\S+) True$", run("time_estimate.py", "--no-trace", sips=2), re.MULTILINE
    )
    assert len(lines) == 2
    for estimated, measured in lines:
        # The ranks do not start in the same moment of their fabric's clocks.
        assert float(estimated) == pytest.approx(float(measured), rel=2e-3)
        assert float(measured) > 1
