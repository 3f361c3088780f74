"""The secret of a site is private, and the id of a run follows from it."""

from pathlib import Path

import pytest

from kernbench.cli.launchers.secret import read_secret, run_id_of
from runtime.core.errors import UsageError

SECRET = b"sixteen bytes and more"


def file_of(folder: Path, mode: int, content: bytes = SECRET + b"\n") -> Path:
    file = folder / "secret"
    file.write_bytes(content)
    file.chmod(mode)
    return file


def test_a_secret_comes_from_an_option_a_file_or_a_variable(tmp_path: Path):
    file = file_of(tmp_path, 0o600)
    assert read_secret({}, file) == SECRET
    assert read_secret({"KERNBENCH_SECRET_FILE": str(file)}, None) == SECRET
    assert read_secret({"KERNBENCH_SECRET": SECRET.decode()}, None) == SECRET
    assert read_secret({"KERNBENCH_SECRET": "", "KERNBENCH_SECRET_FILE": ""}, None) is None


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_file_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int):
    file = file_of(tmp_path, mode)
    with pytest.raises(UsageError, match=f"mode {mode:04o}.*chmod 600 {file}"):
        read_secret({}, file)


@pytest.mark.parametrize(
    ("content", "line"),
    [(b"short\n", "has 5 bytes: expected 16 to 4,096"), (bytes(5000), "has 4,097 bytes")],
)
def test_a_secret_of_a_wrong_length_is_refused(tmp_path: Path, content: bytes, line: str):
    with pytest.raises(UsageError, match=line):
        read_secret({}, file_of(tmp_path, 0o600, content))


def test_a_missing_file_is_one_line(tmp_path: Path):
    with pytest.raises(UsageError, match=r"cannot read the secret: .*: No such file"):
        read_secret({}, tmp_path / "none")


def test_the_id_of_a_run_differs_by_secret_and_by_run():
    ids = {run_id_of(secret, run) for secret in (SECRET, SECRET * 2) for run in ("a", "b")}
    assert len(ids) == 4
    assert run_id_of(SECRET, "a") in ids
    assert not any(SECRET.decode() in each for each in ids)
