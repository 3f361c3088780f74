"""Operators on rows come close to the least time of their bytes, functions and links."""

import re
from collections.abc import Mapping

import pytest

from tests.torch.conftest import PROGRAMS, Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(900)]


def names(program: str) -> list[str]:
    text = (PROGRAMS / program).read_text("utf-8")
    return re.findall(r'^    "([\w ,]+)": ', text, re.MULTILINE)


LEAST_SHARE = 0.6
LISTS = "foreach AdamW"
"""Eight launches, each of which takes its own time to begin and to end."""
TOLERANCES = {
    "layer_norm, bfloat16": 2**-7,
    "rms_norm, bfloat16": 2**-7,
    "gradient of rows": 0.0,
    "lists that use results": 0.0,
    "broadcasts": 0.0,
}
"""The largest errors as shares of the largest element; 2^-18 of float32, of sums of 2,050 rows."""


@pytest.fixture(scope="module")
def times(run: Runs) -> Mapping[str, list[float]]:
    lines = run("rows_roofline.py", "--no-data", "--no-trace").splitlines()
    fields = (line.split(" | ") for line in lines if " | " in line)
    return {name: [*map(float, numbers)] for name, *numbers in fields}


@pytest.fixture(scope="module")
def errors(run: Runs) -> Mapping[str, float]:
    lines = (line.split(" | ") for line in run("rows_values.py", "--no-trace").splitlines())
    return {line[0]: float(line[1]) for line in lines if len(line) == 2}


@pytest.mark.parametrize("name", [name for name in names("rows_roofline.py") if name != LISTS])
def test_an_operator_on_rows_reaches_its_share_of_the_bound(
    name: str, times: Mapping[str, list[float]]
):
    taken_ns, bound_ns, _ = times[name]
    assert bound_ns / taken_ns >= LEAST_SHARE


def test_fused_adamw_is_faster_than_the_operators_of_its_formula(
    times: Mapping[str, list[float]],
):
    (fused_ns, fused_bound_ns, _), (lists_ns, lists_bound_ns, _) = (
        times["fused AdamW"],
        times[LISTS],
    )
    assert lists_ns / fused_ns >= lists_bound_ns / fused_bound_ns


@pytest.mark.parametrize("name", names("rows_values.py"))
def test_an_operator_on_rows_of_several_blocks_equals_that_of_the_cpu(
    name: str, errors: Mapping[str, float]
):
    assert errors[name] <= TOLERANCES.get(name, 2**-18)
