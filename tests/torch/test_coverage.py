"""The page docs/pytorch-coverage.md states of each feature what happens with it.

After a change of operators: `make torch-coverage`.
"""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

from tests.torch import coverage_counts, coverage_table, models_table, published_table
from tests.torch.coverage_record import CoverageProgram, CoverageRecord, ProgramError
from tests.torch.models_table import IMAGES, hugging_face_names
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
    names = [name for listed in coverage_table.feature_names().values() for name in listed]
    assert sorted(ROWS) == sorted(names)
    counts = Counter(outcome.partition(":")[0] for outcome, _ in ROWS.values())
    listed = ", ".join(f"{counts[each]} {each}" for each in coverage_table.OUTCOMES if counts[each])
    assert f"{len(ROWS)} features: {listed}." in LINES


def test_no_feature_has_other_results_than_a_cpu():
    assert [name for name, (outcome, _) in ROWS.items() if outcome == "other results"] == []


def test_the_page_has_every_model_near_a_cpu_and_hardly_on_the_host():
    names = [*hugging_face_names(), *IMAGES.values()]
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


ONE_BY_ONE = """
import sys
for item in sys.argv[2:]:
    assert item != sys.argv[1], f"no {item} today"
    print(f"= {item} | {sys.argv[1]}", flush=True)
"""


def test_a_run_that_is_cut_keeps_its_lines_and_measures_the_others_alone(tmp_path: Path):
    record, items = CoverageRecord(tmp_path), ["one", "two", "three"]
    for failing, missing in (("two", ["two", "three"]), ("three", ["three"])):
        command = (sys.executable, "-c", ONE_BY_ONE, failing)
        with pytest.raises(ProgramError, match=f"no {failing} today") as error:
            record.lines("numbers", [CoverageProgram(command, items)])
        assert error.value.args[1] == missing
    command = (sys.executable, "-c", ONE_BY_ONE, "-")
    lines = record.lines("numbers", [CoverageProgram(command, items)])
    assert lines == {"one": "= one | two\n", "two": "= two | three\n", "three": "= three | -\n"}
    record.clear(["numbers"])
    assert record.lines("numbers", [CoverageProgram(command, ["two"])]) == {"two": "= two | -\n"}


def test_a_program_that_fails_leaves_the_lines_of_another_one(tmp_path: Path):
    record = CoverageRecord(tmp_path)
    programs = [
        CoverageProgram((sys.executable, "-c", ONE_BY_ONE, failing), [item])
        for item, failing in (("one", "one"), ("two", "-"))
    ]
    with pytest.raises(ProgramError, match="ended without one"):
        record.lines("numbers", programs)
    assert "two" in (tmp_path / "numbers").read_text("utf-8")


def test_models_keep_their_rows_where_transformers_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(models_table, "find_spec", lambda _: None)
    record = CoverageRecord(tmp_path)
    for name in IMAGES:
        line = f"= {name} | 1.0e-07 | 2.0e-07 | - | 0.0 | 0.0 | 3.0\n"
        record.add("models", name, line, len(IMAGES))
    rows = models_table.section(record, PARTS["models"]).splitlines()
    assert [each for each in PARTS["models"].splitlines() if each.startswith("| Llama")] == [
        each for each in rows if each.startswith("| Llama")
    ]
    assert rows[-1] == f"| {IMAGES['mobilenet']} | 1.0e-07 | 2.0e-07 |  | 0.0 % | 0.0 % | 3.0 |"
    assert "transformers is not installed" in capsys.readouterr().out


def test_published_scripts_keep_their_rows_without_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv(published_table.CHECKOUT, raising=False)
    section = published_table.section(CoverageRecord(tmp_path), PARTS["published"])
    assert "\n" + section == PARTS["published"]


def test_counts_are_those_of_the_tables():
    pages = [each.read_text("utf-8") for each in (coverage_table.PAGE, coverage_table.OPERATORS)]
    counts = coverage_counts.counts(*pages)
    assert counts["features"] in pages[0]
    assert counts["models"] == str(len(IMAGES) + len(hugging_face_names()))
    own, total = map(int, counts["wholly on the device, results"].split(" of "))
    assert f"| wholly on the device | {100 * own / total:.1f} % |" in pages[1]
    assert counts["other results"] == counts["errors"] == "0, gradients 0"


@pytest.mark.nightly
@pytest.mark.multiproc
@pytest.mark.timeout(900)
@pytest.mark.parametrize("theme", coverage_table.THEMES)
def test_the_page_is_true(theme: str, tmp_path: Path):
    for row in coverage_table.measured(CoverageRecord(tmp_path), [theme])[theme]:
        operators = ", ".join(f"`{each}`" for each in row.operators)
        assert ROWS[row.name] == (row.outcome, operators)


@pytest.mark.nightly
@pytest.mark.multiproc
@pytest.mark.timeout(900)
@pytest.mark.parametrize("theme", coverage_table.THEMES)
def test_results_depend_on_the_vector_unit_only_by_operators_that_are_named(
    theme: str, tmp_path: Path
):
    own, plain = (
        coverage_table.on_device(CoverageRecord(tmp_path / name), [theme], **environment)[theme]
        for name, environment in {
            "own": dict[str, str](),
            "plain": {"ATEN_CPU_CAPABILITY": "default"},
        }.items()
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
