"""A result whose files cannot be written is printed; a report that cannot be printed is filed."""

import errno
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.launch.directory import RunDirectory
from kernbench.command.simulation import run
from runtime.core.errors import UsageError
from runtime.core.output import OutputError
from tests.support.runs import without_progress
from tests.support.sessions import ROOT, fake_launcher, plan

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]
NO_SPACE = "No space left on device"
SIPS = ("--sips", "1", "--no-data", "--max-bytes", "256")


def shell(command: str, where: Path) -> tuple[int, str, str]:
    """The command `command` of a shell, in which $KB is `kernbench`: exit code, output, errors."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=where,
        env=os.environ | {"KB": f"{sys.executable} {ROOT / 'launch.py'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, without_progress(done.stderr)


def test_the_table_and_the_digest_are_printed_when_no_file_can_be_written(tmp_path: Path):
    # The limit holds for files and not for the pipe of the standard output.
    code, out, errors = shell(f"ulimit -f 0; $KB {' '.join(SIPS)} --out here", tmp_path)
    assert code == 1
    assert "intercube_allreduce (ws=1): 16 NOT CHECKED" in out
    assert "\ndigest " in out
    assert "\nfiles " not in out
    assert errors == "kernbench: error: cannot write here/topology.yaml: File too large\n"
    assert list((tmp_path / "here").iterdir()) == []


def test_a_directory_of_temporary_files_that_cannot_be_used_is_one_line(tmp_path: Path):
    (tmp_path / "file").touch()
    code, _, errors = shell(f"TMPDIR={tmp_path}/none $KB {' '.join(SIPS)}", tmp_path)
    assert (code, errors) == (0, ""), "Python takes the next usable directory"
    with pytest.raises(UsageError, match=r"^TMPDIR: cannot create a directory in .*: Not a dir"):
        RunDirectory(tmp_path / "file")


@pytest.mark.parametrize(
    ("redirection", "reason"), [(">/dev/full", NO_SPACE), (">&-", "Bad file descriptor")]
)
@pytest.mark.parametrize("command", [" ".join(SIPS), "list", "validate --list"])
def test_a_standard_output_that_cannot_be_written_is_one_line_and_no_traceback(
    command: str, redirection: str, reason: str, tmp_path: Path
):
    code, out, errors = shell(f"$KB {command} {redirection}", tmp_path)
    assert (code, out) == (1, "")
    assert errors == f"kernbench: error: cannot write the standard output: {reason}\n"


@pytest.mark.parametrize("command", [SIPS, ("list",)])
def test_a_reader_that_has_ended_is_exit_code_141_and_no_line(
    command: tuple[str, ...], tmp_path: Path
):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, str(ROOT / "launch.py"), *command],
        cwd=tmp_path,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_a_working_directory_that_was_removed_is_one_line(tmp_path: Path):
    command = f"mkdir gone; cd gone; rmdir ../gone; $KB {' '.join(SIPS)} --out {tmp_path}/out"
    code, out, errors = shell(command, tmp_path)
    assert (code, out) == (2, "")
    assert errors == (
        "kernbench: error: the working directory has been removed: change to another\n"
    )


def test_a_closed_standard_error_changes_no_result(tmp_path: Path):
    code, out, _ = shell(f"$KB {' '.join(SIPS)} 2>&-", tmp_path)
    assert code == 0
    assert "\ndigest " in out


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("perf all_reduce --sips 1 --no-data --json /dev/full", "# Avg bus bandwidth"),
        ("probe --case dma-own --csv /dev/full", "to the picosecond"),
        ("probe --case dma-own --json /dev/full", "to the picosecond"),
        ("validate --only f. --procs 1 --csv /dev/full", "all within their tolerance"),
    ],
)
def test_rows_that_cannot_be_written_are_named_after_the_table(
    command: str, result: str, tmp_path: Path
):
    code, out, errors = shell(f"$KB {command}", tmp_path)
    assert code == 1
    assert result in out
    # The progress of a validation comes before.
    assert f"\n{errors}".endswith(f"\nkernbench: error: cannot write /dev/full: {NO_SPACE}\n")


@pytest.mark.parametrize("option", ["probe --csv", "probe --json", "validate --csv"])
def test_a_file_that_cannot_be_written_is_refused_before_a_measurement(option: str, tmp_path: Path):
    code, out, errors = shell(f"$KB {option} /", tmp_path)
    assert (code, out) == (2, "")
    command, name = option.split()
    assert errors == f"kernbench: error: {command}: {name}: cannot write /: Is a directory\n"


class _FullAfterTheHeading(io.StringIO):
    def flush(self) -> None:
        if "\ndigest " in self.getvalue():
            raise OSError(errno.ENOSPC, NO_SPACE)


def test_the_files_are_written_when_the_report_cannot_be_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "stdout", _FullAfterTheHeading())
    with pytest.raises(OutputError, match=f"^cannot write the standard output: {NO_SPACE}$"):
        run(plan(2), fake_launcher("normal"), tmp_path / "out")
    assert (tmp_path / "out" / "run.json").exists()
