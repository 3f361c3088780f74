"""The private directory of a run, and the removal of abandoned ones."""

import os
import stat
from pathlib import Path

from coordinator.launch.directory import RunDirectory, sweep


def test_a_run_directory_is_private_named_after_the_process_and_gone_afterwards(tmp_path: Path):
    with RunDirectory(tmp_path) as directory:
        assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700
        assert directory.path.name.startswith(f"kernbench-{os.getpid()}-")
        (directory.path / "lp0.sock").touch()
    assert not directory.path.exists()


def test_the_directory_of_a_dead_coordinator_is_swept_by_the_next_run(tmp_path: Path):
    stale = tmp_path / "kernbench-1-ab_3dead"
    stale.mkdir()
    (stale / "control.sock").touch()
    with RunDirectory(tmp_path):
        assert not stale.exists()


def test_the_directory_of_a_living_run_is_not_swept(tmp_path: Path):
    with RunDirectory(tmp_path) as directory:
        sweep(tmp_path)
        assert directory.path.exists()


def test_only_directories_of_runs_are_swept(tmp_path: Path):
    (tmp_path / "other").mkdir()
    (tmp_path / "kernbench-notes.txt").touch()
    (tmp_path / "kernbench-results").mkdir()
    (tmp_path / "kernbench-results" / "run.json").touch()
    (tmp_path / "kernbench-link").symlink_to(tmp_path / "other")
    sweep(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4
    assert (tmp_path / "kernbench-results" / "run.json").exists()
