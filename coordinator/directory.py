"""Creates the private directory of a run, which holds its sockets, and removes abandoned ones.

The process that holds the lock (`flock`) of a directory owns it. The system releases the locks of a
process that dies for any reason; so a directory that can be locked has no owner, and the next
run removes it.
"""

import fcntl
import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from weakref import finalize

from runtime.core.errors import UsageError

PREFIX = "kernbench-"
# The name that `mkdtemp` gives. A user's own /tmp/kernbench-results must never be removed.
_RUN_DIRECTORY = re.compile(rf"{PREFIX}\d+-[a-z0-9_]{{8}}")
_TMP = Path("/tmp")  # noqa: S108 - the directory in it is private: mkdtemp uses mode 0700
_MAX_SOCKET_PATH_BYTES = 100
_LONGEST_NAME = "/lp255.sock"


class RunDirectory:
    """A new directory with mode 0700; removed on exit from the context or the interpreter.

    Raises `UsageError` if it cannot be created.
    """

    def __init__(self, parent: Path | None = None) -> None:
        parent = parent or _parent()
        sweep(parent)
        try:
            self.path, self._lock = _locked_directory(parent)
        except OSError as error:
            raise UsageError(
                f"TMPDIR: cannot create a directory in {parent}: {error.strerror}"
            ) from error
        self._remove = finalize(self, _remove, self.path, self._lock)

    @property
    def control_endpoint(self) -> str:
        """The endpoint of the rendezvous."""
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
    """Remove the directories of coordinators that died before they removed their own."""
    for path in parent.glob(f"{PREFIX}*"):
        if _RUN_DIRECTORY.fullmatch(path.name) and _is_own_directory(path):
            _remove_if_unowned(path)


def _parent() -> Path:
    # The path of a UNIX socket is limited to about 100 bytes; a deep TMPDIR may leave no room.
    try:
        parent = Path(tempfile.gettempdir())
    except FileNotFoundError:
        # Python tries to write a file there. On a full disk or under a limit of file sizes there
        # is no room for it, but a directory and sockets need none.
        parent = Path(os.environ.get("TMPDIR") or _TMP)
    longest = len(os.fsencode(parent / f"{PREFIX}{os.getpid()}-xxxxxxxx")) + len(_LONGEST_NAME)
    if longest <= _MAX_SOCKET_PATH_BYTES:
        return parent
    return _TMP


def _locked_directory(parent: Path) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent))
        # Until it is locked, another coordinator may remove it as abandoned; then try again.
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
        # Another user's directory in a shared /tmp is not ours to remove.
        return path.is_dir() and not path.is_symlink() and path.stat().st_uid == os.getuid()
    except OSError:
        return False


def _remove_if_unowned(path: Path) -> None:
    try:
        # O_NOFOLLOW: a symbolic link with our prefix must not lead the removal elsewhere.
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        # If the lock is held, its owner is alive: BlockingIOError, and the directory stays.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError:
        pass
    finally:
        os.close(lock)
