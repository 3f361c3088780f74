"""Operators along an axis and those of images run on the device, with the results and gradients of
a CPU.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache

import pytest

from tests.torch.conftest import PROGRAMS, Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]

NAMES = {
    program: re.findall(
        r'^    "([\w ]+)": \(', (PROGRAMS / program).read_text("utf-8"), re.MULTILINE
    )
    for program in ("axis_operators.py", "image_operators.py")
}
Outcomes = Callable[[str], Mapping[str, tuple[str, str]]]


@pytest.fixture(scope="module")
def outcomes(run: Runs) -> Outcomes:
    """Runs a program once; the outcome of each of its cases, with the operators on the host."""

    @cache
    def of(program: str) -> Mapping[str, tuple[str, str]]:
        lines = run(program, "--no-trace").splitlines()
        fields = (line.split(" | ") for line in lines if " | " in line)
        return {name: (outcome, fallbacks) for name, outcome, fallbacks in fields}

    return of


@pytest.mark.parametrize("program", NAMES)
def test_a_program_reports_every_case(program: str, outcomes: Outcomes):
    assert sorted(outcomes(program)) == sorted(NAMES[program])


@pytest.mark.parametrize(
    ("program", "name"), [(program, name) for program, names in NAMES.items() for name in names]
)
def test_an_operator_equals_that_of_the_cpu(program: str, name: str, outcomes: Outcomes):
    assert outcomes(program)[name] == ("ok", "")
