"""The page docs/pytorch-coverage.md states of each feature what happens with it.

After a change of operators: `make torch-coverage`.
"""

import re
from collections import Counter

import pytest
import torch

from tests.torch import coverage_table
from tests.torch.conftest import PROGRAMS
from tests.torch.models_table import IMAGES
from tests.torch.published_table import REFUSED, SCRIPTS

PARTS = coverage_table.parts_of(coverage_table.PAGE.read_text("utf-8"))
LINES = PARTS["features"].splitlines()
ROWS = {
    name: (outcome, operators.rpartition(";")[0])
    for name, outcome, operators in (
        re.split(r" \| ", line.removeprefix("| ").removesuffix(" |"))
        for line in LINES
        if line.startswith("| ") and not line.startswith(("| ---", "| feature"))
    )
}


def test_the_page_has_every_feature_and_counts_the_outcomes():
    source = "".join(each.read_text("utf-8") for each in (PROGRAMS / "coverage").glob("*.py"))
    names = re.findall(r"^@feature\(THEME, [\"'](.*)[\"']\)$", source, re.MULTILINE)
    assert sorted(ROWS) == sorted(names)
    counts = Counter(outcome.partition(":")[0] for outcome, _ in ROWS.values())
    listed = ", ".join(f"{counts[each]} {each}" for each in coverage_table.OUTCOMES if counts[each])
    assert f"{len(ROWS)} features: {listed}." in LINES


def test_no_feature_has_other_results_than_a_cpu():
    assert [name for name, (outcome, _) in ROWS.items() if outcome == "other results"] == []


def test_the_page_has_every_model_near_a_cpu_and_hardly_on_the_host():
    source = (PROGRAMS / "hugging_face.py").read_text("utf-8")
    names = [*re.findall(r'^    "(.+)": \($', source, re.MULTILINE), *IMAGES.values()]
    names += re.findall(r'^    "(.+)": \(".*\),$', source, re.MULTILINE)
    rows = [line.strip("| ").split(" | ") for line in PARTS["models"].splitlines() if "|" in line]
    assert sorted(each[0] for each in rows[2:]) == sorted(names)
    for name, loss, gradients, tokens, host, *_ in rows[2:]:
        assert max(float(loss), float(gradients)) < 1e-5, name
        assert tokens in {"same", ""}, name
        assert float(host.removesuffix(" %")) <= 5, name


def test_the_page_has_every_published_script():
    rows = [line for line in PARTS["published"].splitlines() if line.startswith("| ")][2:]
    assert len(rows) == len(SCRIPTS)
    for row, script in zip(rows, SCRIPTS, strict=True):
        result = "refused: " if script.path in REFUSED else "as gloo"
        assert row.startswith(f"| {script.name} | {script.ranks} | {result}")


@pytest.mark.nightly
@pytest.mark.multiproc
@pytest.mark.timeout(900)
@pytest.mark.parametrize("theme", coverage_table.THEMES)
def test_the_page_is_true(theme: str):
    for row in coverage_table.measured(theme):
        operators = ", ".join(f"`{each}`" for each in row.operators)
        assert ROWS[row.name] == (row.outcome, operators)


@pytest.mark.nightly
@pytest.mark.multiproc
@pytest.mark.timeout(900)
@pytest.mark.parametrize("theme", coverage_table.THEMES)
def test_results_depend_on_the_vector_unit_only_by_operators_that_are_named(theme: str):
    own, plain = (
        coverage_table.on_device(theme, **environment)
        for environment in ({}, {"ATEN_CPU_CAPABILITY": "default"})
    )
    for rank, other in zip(own, plain, strict=True):
        for name, outcome in rank.items():
            if not outcome["unportable"]:
                assert _bytes_of(outcome) == _bytes_of(other[name]), name


def _bytes_of(outcome: dict) -> list[bytes]:
    return [
        each.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        for each in outcome["results"]
    ]
