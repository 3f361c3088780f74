"""Operators of PyTorch on the device have the results and gradients of those on a CPU."""

import re
import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests.torch.conftest import PROGRAMS, Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]

PROGRAM = (PROGRAMS / "operators.py").read_text("utf-8")
NAMES = re.findall(r'^    "([\w ]+)": \(', PROGRAM, re.MULTILINE)
ON_HOST = {
    "short integers on the host": "add.out",
    "sort on the host": "scatter.src_out sort.values_stable",
}
"""The operators of a case, and of its gradient, which have no kernel."""


@pytest.fixture(scope="module")
def outcomes(run: Runs) -> Mapping[str, tuple[str, str]]:
    lines = (line.split(" | ") for line in run("operators.py").splitlines() if " | " in line)
    return {name: (outcome, fallbacks) for name, outcome, fallbacks in lines}


def test_the_program_reports_every_case(outcomes: Mapping[str, tuple[str, str]]):
    assert sorted(outcomes) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_equals_that_of_the_cpu(name: str, outcomes: Mapping[str, tuple[str, str]]):
    assert outcomes[name] == ("ok", ON_HOST.get(name, ""))


def test_types_that_a_cpu_refuses_are_errors_that_a_program_catches(run: Runs):
    lines = [line.split(" | ") for line in run("refused_types.py").splitlines() if " | " in line]
    assert len(lines) > 30
    assert [each for each in lines if each[1] != each[2] or not each[1].endswith("Error")] == []


def test_an_error_in_place_of_a_fallback_names_the_operator(run: Runs):
    output = run("operators.py", CASES="sort on the host", KERNBENCH_FALLBACK="error")
    assert (
        "aten::sort.values_stable has no kernel on 'ahbm', and KERNBENCH_FALLBACK is 'error'"
        in output
    )


def test_kernbench_itself_does_not_import_pytorch():
    check = "import kernbench, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


OUT_OF_BOUNDS = {
    "a view": "index 7 is out of bounds for a table of 5 rows",
    "two axes": "index 8 is out of bounds for dimension 1 with size 8",
    "gather": "index 8 is out of bounds for dimension 1 with size 8",
    "scatter": "index -1 is out of bounds for rows of 8 elements",
    "cross_entropy": "index 8 is out of bounds for 8 classes",
    "index_add": "index 12 is out of bounds for a table of 10 rows",
}


@pytest.mark.parametrize("case", OUT_OF_BOUNDS)
def test_an_index_out_of_bounds_is_an_error_and_reads_nothing(case: str, run: Runs):
    assert "raised IndexError at" in (output := run("indices.py", program_arguments=[case], code=1))
    assert OUT_OF_BOUNDS[case] in output


def test_a_program_catches_an_index_out_of_bounds_where_it_waits(run: Runs):
    output = run("indices.py")
    for case, error in OUT_OF_BOUNDS.items():
        assert f"= {case}: {error}\n" in output
    assert "= the end\n" in output
