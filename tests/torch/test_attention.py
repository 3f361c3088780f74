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


def test_distributed_tensors_attend_on_the_rank_that_has_their_batches_or_heads(run: Runs):
    output = run("attention_shards.py", sips=2)
    lines = re.findall(r"^= (.*) \| (.*) \| (.*)$", output, re.MULTILINE)
    placed = {name: placement for name, placement, _ in lines}
    assert placed == {
        "batches": "S(0)",
        "heads": "S(1)",
        "copies": "R",
        # No rank has all that it needs, or ranks have unequal parts.
        "tokens": "R",
        "heads of queries alone": "R",
        "three heads": "R",
    }
    assert len(lines) == 2 * 2 * len(placed)
    assert max(float(difference) for _, _, difference in lines) < 1e-5
