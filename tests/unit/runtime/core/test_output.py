"""Outputs that cannot be written: one line for all of them, and no part of a file remains."""

import io
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.core.errors import UsageError
from runtime.core.output import (
    OutputError,
    UnwrittenOutputs,
    clear_output,
    print_lines,
    write_output,
)

FULL = Path("/dev/full")
NO_SPACE = "No space left on device"


def test_a_file_on_a_full_disk_is_an_error_with_its_name_and_the_reason():
    with pytest.raises(OutputError, match=f"^cannot write /dev/full: {NO_SPACE}$"):
        write_output(FULL, b"x")
    assert FULL.exists()


def test_no_part_of_a_file_remains_that_cannot_be_written(tmp_path: Path):
    path = tmp_path / "rows.json"
    path.symlink_to(FULL)
    with pytest.raises(OutputError):
        write_output(path, b"x")
    assert path.is_symlink(), "a device is not removed"
    path.unlink()
    write_output(path, b"whole")
    assert path.read_bytes() == b"whole"


def test_the_other_outputs_are_written_and_one_error_names_all_that_are_not(tmp_path: Path):
    unwritten = UnwrittenOutputs()
    for path in (FULL, tmp_path / "a", tmp_path):
        with unwritten.attempt():
            write_output(path, b"x")
    assert (tmp_path / "a").read_bytes() == b"x"
    with pytest.raises(OutputError) as caught:
        unwritten.check()
    assert str(caught.value) == (
        f"cannot write /dev/full: {NO_SPACE}, nor {tmp_path}: Is a directory"
    )


def test_a_standard_output_that_is_full_is_named(monkeypatch: pytest.MonkeyPatch):
    full = FULL.open("w")
    monkeypatch.setattr(sys, "stdout", full)
    with pytest.raises(OutputError, match=f"^cannot write the standard output: {NO_SPACE}$"):
        print_lines(["a line"])
    monkeypatch.undo()
    with pytest.raises(OSError, match=NO_SPACE):
        full.close()


class _Unread(io.StringIO):
    def flush(self) -> None:
        raise BrokenPipeError


def test_a_reader_that_has_ended_prevents_no_other_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "stdout", _Unread())
    unwritten = UnwrittenOutputs()
    with unwritten.attempt():
        print_lines(["a line"])
    with unwritten.attempt():
        write_output(tmp_path / "a", b"x")
    assert (tmp_path / "a").exists()
    with pytest.raises(BrokenPipeError):
        unwritten.check()


def test_a_file_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path):
    path = tmp_path / "missing" / "rows.json"
    with pytest.raises(
        UsageError, match=f"^perf: --json: cannot write {path}: No such file or directory$"
    ):
        clear_output(path, "perf: --json")


def test_rows_of_an_earlier_run_are_not_taken_for_those_of_a_run_that_fails(tmp_path: Path):
    path = tmp_path / "rows.json"
    path.write_text("old")
    clear_output(path, "perf: --json")
    assert path.read_text() == ""


def test_a_line_of_an_unbuffered_stream_is_one_write():
    # A socket of this type keeps the writes apart.
    ours, output = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    program = (
        "from runtime.core.output import write_whole_lines\n"
        "write_whole_lines()\n"
        "print('rank', 0)\n"
        "print('part', end='', flush=True)"
    )
    with ours, output:
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            stdout=output,
            check=True,
        )
        output.close()
        assert [ours.recv(100) for _ in range(3)] == [b"rank 0\n", b"part", b""]
