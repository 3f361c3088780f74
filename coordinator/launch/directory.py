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
from typing import Self
from weakref import finalize

from runtime.core.errors import UsageError
from runtime.core.host_directory import remove_if_unowned, socket_folder

PREFIX = "kernbench-"
# The name that `mkdtemp` gives, or that of the processes of a launcher on this host. A user's own
# /tmp/kernbench-results must never be removed.
_RUN_DIRECTORY = re.compile(rf"{PREFIX}(\d+-[a-z0-9_]{{8}}|node-[0-9a-f]{{16}})")


class RunDirectory:
    """A new directory with mode 0700; removed on exit from the context or the interpreter.

    Raises `UsageError` if it cannot be created.
    """

    def __init__(self, parent: Path | None = None) -> None:
        parent = parent or socket_folder()
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

    def __exit__(self, *_: object) -> None:
        self._remove()


def sweep(parent: Path) -> None:
    """Remove the directories of coordinators that died before they removed their own."""
    for path in parent.glob(f"{PREFIX}*"):
        if _RUN_DIRECTORY.fullmatch(path.name) and _is_own_directory(path):
            remove_if_unowned(path)


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
