"""Cross entropy on the device: numbers, gradients, reductions."""

import re
from collections.abc import Mapping

import pytest

from tests.torch.conftest import PROGRAMS, Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]

PROGRAM = (PROGRAMS / "losses.py").read_text("utf-8")
NAMES = re.findall(r'^    "([\w ,]+)": [(\w]', PROGRAM, re.MULTILINE)
FORWARD = "cross_entropy_loss"
COMPOSED = {"smoothed", "weights", "positions", "probabilities"}
"""The cases that are `log_softmax` and other operators."""


@pytest.fixture(scope="module")
def outcomes(run: Runs) -> Mapping[str, tuple[str, str]]:
    lines = (line.split(" | ") for line in run("losses.py").splitlines() if " | " in line)
    return {name: (outcome, kernels) for name, outcome, kernels in lines}


def test_the_program_reports_every_case(outcomes: Mapping[str, tuple[str, str]]):
    assert sorted(outcomes) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_cross_entropy_and_its_gradient_equal_those_of_the_cpu(
    name: str, outcomes: Mapping[str, tuple[str, str]]
):
    kernels = f"{FORWARD} 1 {FORWARD}_backward 1"
    if name in COMPOSED:
        kernels = ""
    elif name == "autocast":
        kernels = f"{FORWARD} 1"
    assert outcomes[name] == ("ok", kernels)
