"""`kernbench runs list`: every run in one line, also one that is damaged."""

import os
from pathlib import Path

import pytest

from kernbench.cli.main import main
from tests.support.hand_made_runs import one_kernel
from tests.support.run_tables import write_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in (1, 2):
        made = write_run(tmp_path / "runs" / f"000{number}-gemm", [one_kernel()], 1500)
        os.utime(made / "run.json", (number * 86_400, number * 86_400))
    return tmp_path / "runs"


def test_a_line_has_number_name_sips_time_digest_and_size(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["runs", "list", str(folder)]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["1", "gemm", "1970-01-02"],
        ["2", "gemm", "1970-01-03"],
    ]
    assert lines[0].split()[4:7] == ["1", "1.500", "0" * 16]
    assert float(lines[0].split()[7]) > 0


def test_other_directories_are_not_listed(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "notes").mkdir()
    (folder / "other").mkdir()
    (folder / "other" / "run.json").write_text('{"of": "another program"}')
    (folder / "latest").symlink_to(folder / "0001-gemm")
    assert main(["runs", "list", str(folder)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_damaged_run_has_the_reason_in_its_line(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "0002-gemm" / "run.json").write_text("{")
    (folder / "0003-killed" / "records").mkdir(parents=True)
    assert main(["runs", "list", str(folder)]) == 1
    out = capsys.readouterr().out
    assert "is not the report of a run" in out
    assert "has no run.json" in out


def test_a_folder_without_runs_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["runs", "list", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"no runs in {tmp_path}\n"
    assert main(["runs", "list", str(tmp_path / "absent")]) == 2
    assert "cannot read" in capsys.readouterr().err
