"""Operators by an index, of segments, bags and grids run on the device, with the results and
gradients of a CPU.
"""

import re
from collections.abc import Mapping

import pytest

from tests.torch.conftest import PROGRAMS, Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]

PROGRAM = (PROGRAMS / "axis_operators.py").read_text("utf-8")
NAMES = re.findall(r'^    "([\w ]+)": \(', PROGRAM, re.MULTILINE)


@pytest.fixture(scope="module")
def outcomes(run: Runs) -> Mapping[str, tuple[str, str]]:
    output = run("axis_operators.py", "--no-trace")
    lines = (line.split(" | ") for line in output.splitlines() if " | " in line)
    return {name: (outcome, fallbacks) for name, outcome, fallbacks in lines}


def test_the_program_reports_every_case(outcomes: Mapping[str, tuple[str, str]]):
    assert sorted(outcomes) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_along_an_axis_equals_that_of_the_cpu(
    name: str, outcomes: Mapping[str, tuple[str, str]]
):
    assert outcomes[name] == ("ok", "")
