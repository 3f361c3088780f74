"""Attention on the device: numbers, gradients, masks, and the memory of its gradient."""

import re
from collections.abc import Mapping

import pytest

from tests.torch.conftest import PROGRAMS, Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]

PROGRAM = (PROGRAMS / "attention.py").read_text("utf-8")
NAMES = re.findall(r'^    "([\w ,]+)": [(\w]', PROGRAM, re.MULTILINE)
FORWARD = "scaled_dot_product_attention"
STORED = {"gradient of a mask", "fewer queries, causal", "bools beside keys of one head"}
"""The cases that need the matrix of scores."""


@pytest.fixture(scope="module")
def outcomes(run: Runs) -> Mapping[str, tuple[str, str]]:
    lines = (line.split(" | ") for line in run("attention.py").splitlines() if " | " in line)
    return {name: (outcome, kernels) for name, outcome, kernels in lines}


def test_the_program_reports_every_case(outcomes: Mapping[str, tuple[str, str]]):
    assert sorted(outcomes) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_attention_and_its_gradients_equal_those_of_the_cpu(
    name: str, outcomes: Mapping[str, tuple[str, str]]
):
    kernels = "" if name in STORED else f"{FORWARD} 1 {FORWARD}_backward 1"
    assert outcomes[name] == ("ok", kernels)
