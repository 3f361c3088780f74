"""The private directory of a run: its socket files, readable by nobody else, gone when the run is.

A directory belongs to whoever holds the lock on it. The system drops the lock of a process that dies, so a directory
that can be locked has no owner and is swept.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from weakref import finalize

PREFIX = "kernbench-"
_MAX_SOCKET_PATH_BYTES = 100
_LONGEST_NAME = "/lp255.sock"


class RunDirectory:
    """A fresh directory with mode 0700, named after this process; removed on exit, also that of the interpreter."""

    def __init__(self, parent: Path | None = None) -> None:
        parent = parent or _parent()
        sweep(parent)
        self.path, self._lock = _locked_directory(parent)
        self._remove = finalize(self, _remove, self.path, self._lock)

    @property
    def control_endpoint(self) -> str:
        """Where the coordinator listens."""
        return f"ipc://{self.path}/control.sock"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()


def sweep(parent: Path) -> None:
    """Remove the directories of coordinators that died before they could."""
    for path in parent.glob(f"{PREFIX}*"):
        if _is_own_directory(path):
            _remove_if_unowned(path)


def _parent() -> Path:
    # The path of a UNIX socket is limited to about 100 bytes; a deep TMPDIR does not leave room for it.
    parent = Path(tempfile.gettempdir())
    longest = len(os.fsencode(parent / f"{PREFIX}{os.getpid()}-xxxxxxxx")) + len(_LONGEST_NAME)
    return parent if longest <= _MAX_SOCKET_PATH_BYTES else Path("/tmp")  # noqa: S108 - mkdtemp makes it private


def _locked_directory(parent: Path) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent))
        # Another coordinator may sweep the directory until it is locked: then the next attempt makes a new one.
        with suppress(FileNotFoundError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists():
                return path, lock
            os.close(lock)


def _remove(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


def _is_own_directory(path: Path) -> bool:
    try:
        return path.is_dir() and not path.is_symlink() and path.stat().st_uid == os.getuid()
    except OSError:
        return False


def _remove_if_unowned(path: Path) -> None:
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError:
        pass
    finally:
        os.close(lock)
