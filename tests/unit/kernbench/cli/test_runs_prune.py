"""`kernbench runs prune --keep N` removes the oldest runs, and nothing else."""

import os
from pathlib import Path

import pytest

from coordinator.report.run_lock import RunLock
from kernbench.cli.main import main
from tests.support.hand_made_runs import one_kernel
from tests.support.run_tables import write_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in (1, 2, 3):
        made = write_run(tmp_path / "runs" / f"000{number}-gemm", [one_kernel()], 1500)
        os.utime(made / "run.json", (number * 86_400, number * 86_400))
    return tmp_path / "runs"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_oldest_runs_are_removed_and_named(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["runs", "prune", "--keep", "1", str(folder)]) == 0
    assert names(folder) == ["0003-gemm"]
    *removed, total = capsys.readouterr().out.splitlines()
    assert removed == [f"removed {folder}/000{number}-gemm" for number in (1, 2)]
    assert total.startswith("2 runs removed, ")


def test_as_many_runs_as_there_are_stay(folder: Path):
    assert main(["runs", "prune", "--keep", "3", str(folder)]) == 0
    assert len(names(folder)) == 3


def test_what_is_no_run_and_what_a_link_leads_to_stays(folder: Path, tmp_path: Path):
    (folder / "notes").mkdir()
    (folder / "0009-mine").mkdir()
    (folder / "other").mkdir()
    (folder / "other" / "run.json").write_text('{"of": "another program"}')
    elsewhere = write_run(tmp_path / "elsewhere", [one_kernel()], 1500)
    (folder / "0000-linked").symlink_to(elsewhere)
    assert main(["runs", "prune", "--keep", "0", str(folder)]) == 0
    assert names(folder) == ["0000-linked", "0009-mine", "notes", "other"]
    assert (elsewhere / "run.json").exists()


def test_a_directory_to_which_a_run_is_writing_stays(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    lock = RunLock(folder / "0001-gemm")
    assert main(["runs", "prune", "--keep", "0", str(folder)]) == 0
    assert names(folder) == ["0001-gemm"]
    [line] = capsys.readouterr().err.splitlines()
    assert f"a run of process {os.getpid()} writes to it; it stays" in line
    lock.release()


def test_the_number_of_runs_that_stay_must_be_given(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["runs", "prune", str(folder)]) == 2
    assert main(["runs", "prune", "--keep", "-1", str(folder)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert len(names(folder)) == 3
