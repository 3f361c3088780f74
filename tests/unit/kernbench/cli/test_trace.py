"""The arguments of `kernbench trace`."""

import json
from pathlib import Path

import pytest

from kernbench.cli.main import main
from tests.support.hand_made_runs import one_kernel
from tests.support.run_tables import write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", [one_kernel()], 1000)


def test_the_files_of_ranks_are_in_a_directory_of_their_own(
    run: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["trace", str(run), "--format", "kineto"]) == 0
    path = run / "kineto" / "rank0.json"
    written = json.loads(path.read_text())
    assert written["distributedInfo"]["rank"] == 0
    assert capsys.readouterr().out == f"{path}  {len(written['traceEvents'])} events\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--ranks", "1"], "--ranks '1': the run has ranks 0 to 0, not 1"),
        (["--time", "2ns.."], "--time '2ns..': the run ends at 1.000 ns"),
        (["--format", "kineto", "--split", "5000"], "--split belongs to --format perfetto"),
        (["--split", "10"], "--split: 10 is not in the range x>=1000"),
        (["--out", "/dev/null/x"], "--out: cannot create /dev/null/x: Not a directory"),
    ],
)
def test_wrong_arguments_are_one_line(
    arguments: list[str], problem: str, run: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["trace", str(run), *arguments]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert problem in line
