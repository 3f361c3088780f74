"""Scattered elements, masks, sets and orders are computed on the device, with the results of a CPU;
the host reads counts.
"""

from collections.abc import Mapping

import pytest

from tests.torch.conftest import Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def outcomes(run: Runs) -> Mapping[str, tuple[str, str]]:
    output = run("placed_elements.py", "--no-trace")
    lines = (line.split(" | ") for line in output.splitlines() if " | " in line)
    return {name: (outcome, fallbacks) for name, outcome, fallbacks in lines}


def test_every_case_equals_that_of_the_cpu_and_leaves_the_device_for_no_operator(
    outcomes: Mapping[str, tuple[str, str]],
):
    assert len(outcomes) > 50
    assert {name: given for name, given in outcomes.items() if given != ("ok", "")} == {}


def test_a_mask_of_another_size_than_its_elements_is_refused(run: Runs):
    output = run("mask_sizes.py")
    assert "3 true elements, the tensor whose elements go there has 2" in output
    assert "3 true elements, the tensor whose elements go there has 4" in output
