"""The processes of a host share a directory, which the last of them removes."""

import subprocess
import sys
from pathlib import Path

import pytest

from runtime.core.errors import UsageError
from runtime.core.host_directory import HostDirectory, host_key, shared_path

ROOT = Path(__file__).parents[4]


def test_a_run_has_one_directory_on_a_host_and_another_one_has_another():
    assert shared_path("a") == shared_path("a")
    assert shared_path("a") != shared_path("b")


def test_another_folder_of_temporary_files_is_another_host(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
):
    here = host_key()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("t")))
    assert host_key() != here


def test_the_last_process_removes_the_directory(tmp_path: Path):
    first, second = (HostDirectory(tmp_path / "d") for _ in range(2))
    assert (tmp_path / "d").stat().st_mode & 0o777 == 0o700
    first.leave()
    first.leave()
    assert (tmp_path / "d").exists()
    second.leave()
    assert not (tmp_path / "d").exists()


def test_all_processes_read_one_secret(tmp_path: Path):
    first, second = (HostDirectory(tmp_path / "d") for _ in range(2))
    assert first.secret() == second.secret() == first.secret()
    assert (tmp_path / "d" / "secret").stat().st_mode & 0o777 == 0o600


def test_what_a_killed_run_has_left_is_removed_by_the_next_one(tmp_path: Path):
    code = (
        "import os, sys; from pathlib import Path;"
        "from runtime.core.host_directory import HostDirectory;"
        "d = HostDirectory(Path(sys.argv[1])); print(d.secret(), flush=True);"
        "os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "d")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert killed.returncode == -9
    assert (tmp_path / "d" / "secret").exists()
    assert HostDirectory(tmp_path / "d").secret() != killed.stdout.strip()


def test_a_lock_that_is_kept_over_exec_keeps_the_secret(tmp_path: Path):
    start = (
        "import os, sys; from pathlib import Path\n"
        "from runtime.core.host_directory import HostDirectory; path = Path(sys.argv[1])\n"
    )
    after = (
        f"{start}d = HostDirectory(path, int(sys.argv[2])); print(d.secret())\n"
        "print(os.get_inheritable(int(sys.argv[2])))\n"
        "HostDirectory(path).leave(); print(path.exists()); d.leave(); print(path.exists())"
    )
    before = (
        f"{start}d = HostDirectory(path); print(d.secret(), flush=True)\n"
        f"words = [sys.executable, '-c', {after!r}, sys.argv[1], str(d.keep_over_exec())]\n"
        "os.execv(sys.executable, words)"
    )
    done = subprocess.run(
        [sys.executable, "-c", before, str(tmp_path / "d")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    first, second, *states = done.stdout.split()
    assert first == second
    assert states == ["False", "True", "False"]


def test_one_process_leads(tmp_path: Path):
    first, second = (HostDirectory(tmp_path / "d") for _ in range(2))
    assert first.lead()
    assert not second.lead()
    first.leave()
    assert second.lead()


@pytest.mark.parametrize("mode", [0o755, 0o770])
def test_a_directory_that_others_may_enter_is_refused(tmp_path: Path, mode: int):
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(mode)
    with pytest.raises(UsageError, match="is not a private directory of this user"):
        HostDirectory(tmp_path / "d")


def test_a_symbolic_link_is_refused(tmp_path: Path):
    (tmp_path / "target").mkdir(mode=0o700)
    (tmp_path / "d").symlink_to(tmp_path / "target")
    with pytest.raises(UsageError, match="cannot create"):
        HostDirectory(tmp_path / "d")
