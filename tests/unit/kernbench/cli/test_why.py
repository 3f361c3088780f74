"""The arguments of `kernbench why`."""

import json
from pathlib import Path

import pytest

from kernbench.cli.main import main
from tests.support.hand_made_runs import a_slot_and_its_credit, one_kernel
from tests.support.run_tables import write_run


@pytest.fixture
def run(tmp_path: Path) -> str:
    return str(write_run(tmp_path / "run", [one_kernel()], 1000))


@pytest.fixture
def other(tmp_path: Path) -> str:
    return str(write_run(tmp_path / "other", a_slot_and_its_credit(), 1000))


def test_a_run_is_explained(run: str, capsys: pytest.CaptureFixture[str]):
    assert main(["why", run]) == 0
    assert "where the time of each rank went" in capsys.readouterr().out


def test_two_runs_are_compared(run: str, other: str, capsys: pytest.CaptureFixture[str]):
    assert main(["why", run, other]) == 0
    assert capsys.readouterr().out.startswith(f"# why {run} {other}\n")


def test_json_is_one_object_with_predictions(
    run: str, other: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["why", "--json", run]) == 0
    form = json.loads(capsys.readouterr().out)
    assert (form["total_ps"], form["what_if"][0]["simulated_ps"]) == (1000, None)
    assert main(["why", run, other, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["after"] == other


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "why: give the directory of a run, or of two runs, not 0"),
        (["a", "b", "c"], "why: give the directory of a run, or of two runs, not 3"),
        (["absent"], "no such directory: absent"),
        (["--jsn", "a"], "did you mean '--json'"),
    ],
)
def test_wrong_arguments_are_one_line(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["why", *arguments]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert problem in line


@pytest.mark.parametrize("option", [["--check"], ["--what-if", "ucie.bw_gbs=x2"]])
def test_a_comparison_has_no_predictions(
    option: list[str], run: str, other: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["why", run, other, *option]) == 2
    assert "belongs to one run, and two are compared" in capsys.readouterr().err


def test_a_wrong_number_is_one_line(run: str, capsys: pytest.CaptureFixture[str]):
    assert main(["why", run, "--what-if", "ucie.bw=1"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "did you mean" in line


def test_a_run_of_another_protocol_is_explained_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run = write_run(tmp_path / "old", [one_kernel()], 1000, protocol=7)
    assert main(["why", str(run)]) == 0
    [line] = capsys.readouterr().err.splitlines()
    assert f"{run} was written with protocol 7, this version of kernbench has" in line


def test_a_part_of_a_run_has_its_own_report(run: str, capsys: pytest.CaptureFixture[str]):
    assert main(["why", run, "--kernel", "k"]) == 0
    out = capsys.readouterr().out
    assert "\nkernel k, 1 launch: 0.700 ns, 70.0 % of the run\n" in out
    assert "where the time of each rank went" not in out
    assert main(["why", run, "--time", "0.2..0.5", "--json"]) == 0
    form = json.loads(capsys.readouterr().out)
    assert (form["scope"]["begin_ps"], form["scope"]["end_ps"]) == (200, 500)
    assert "ranks" not in form


def test_a_failed_run_has_the_report_of_what_it_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    directory = write_run(tmp_path / "run", [one_kernel()], 1000, error="deadlock: x")
    assert main(["why", str(directory)]) == 0
    out = capsys.readouterr().out
    assert "# the run failed; this is what it recorded until then:\n#   deadlock: x\n" in out
    assert "\nmeasured part: 0.700 ns" in out
    assert main(["why", str(directory), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["error"] == "deadlock: x"


@pytest.mark.parametrize("option", [["--kernel", "k"], ["--rank", "0"], ["--launch", "0"]])
def test_a_part_is_one_of_a_report_of_one_run(
    option: list[str], run: str, other: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["why", run, other, *option]) == 2
    assert "belong to the report of one run" in capsys.readouterr().err
    assert main(["why", run, "--what-if", "ucie.bw_gbs=x2", *option]) == 2
    assert "belong to the report of one run" in capsys.readouterr().err
