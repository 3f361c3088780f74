"""Lists the run directories in a folder, from the oldest to the newest, and removes the oldest."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coordinator.report.run_lock import LOCK, RunLock
from kernbench.explain.records.directory import RUN, read_report
from kernbench.explain.records.records import RunSummary
from runtime.core.errors import UsageError

_PARTS = ("oplog.jsonl", "records", LOCK)
"""Files that a run which was killed may leave."""


@dataclass(frozen=True)
class ListedRun:
    """A run directory. Without `run` it is damaged or not complete, for the reason `problem`."""

    directory: Path
    ended_s: float
    nbytes: int
    run: RunSummary | None
    problem: str = ""

    @property
    def number(self) -> int | None:
        """The number with which the name begins, if it does."""
        prefix = self.directory.name.partition("-")[0]
        return int(prefix) if prefix.isascii() and prefix.isdecimal() else None


def listed_runs(folder: Path) -> list[ListedRun]:
    """The run directories in `folder`, the oldest first. Symbolic links are none.

    Raises `UsageError` for a folder that cannot be read.
    """
    try:
        paths = [path for path in folder.iterdir() if _is_run(path)]
    except OSError as error:
        raise UsageError(f"runs: cannot read {folder}: {error.strerror}") from error
    return sorted(map(_listed, paths), key=lambda each: (each.ended_s, each.directory.name))


def remove_run(listed: ListedRun) -> str:
    """Remove a run directory; returns why it stays, or nothing."""
    try:
        lock = RunLock(listed.directory)
    except UsageError as error:
        return str(error)
    except OSError as error:
        return f"cannot write to {listed.directory}: {error.strerror}"
    try:
        shutil.rmtree(listed.directory)
    except OSError as error:
        return f"cannot remove {listed.directory}: {error.strerror}"
    finally:
        lock.release()
    return ""


def total_bytes(paths: Sequence[Path]) -> int:
    """The size of all files below `paths`; links count as nothing."""
    sizes = [path.lstat().st_size for path in paths if path.is_file() and not path.is_symlink()]
    return sum(sizes)


def _is_run(path: Path) -> bool:
    if path.is_symlink() or not path.is_dir():
        return False
    is_numbered = path.name.partition("-")[0].isdecimal()
    has_parts = any((path / name).exists() for name in _PARTS)
    if not (path / RUN).exists():
        return is_numbered and has_parts
    if is_numbered or has_parts:
        return True
    try:
        read_report(path)
    except UsageError:
        # A report of another program.
        return False
    return True


def _listed(path: Path) -> ListedRun:
    run, problem = None, ""
    try:
        run = read_report(path)
    except UsageError as error:
        problem = str(error)
    # The report is the last file of a run.
    last = path / RUN if (path / RUN).exists() else path
    return ListedRun(path, last.stat().st_mtime, total_bytes([*path.rglob("*")]), run, problem)
