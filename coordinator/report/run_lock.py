"""The lock of the directory of a run: one run writes to it, and nothing removes it meanwhile.

It is a file in the directory with a lock of the system (`flock`), which the system releases when
the process dies for any reason. The file has the id of that process, for messages; it is removed
with the lock, and a file without a lock is of a process that died.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from weakref import finalize

from runtime.core.errors import UsageError

LOCK = ".lock"
_LONGEST_PID = 20


class RunLock:
    """The lock `name` of `directory`, held until `release`, or until the process ends.

    Raises `UsageError` if another process, or another run of this one, holds it, and `OSError` if
    the directory cannot be written.
    """

    def __init__(self, directory: Path, name: str = LOCK) -> None:
        self.directory = directory
        path = directory / name
        self._release = finalize(self, _released, path, _locked(path), os.getpid())

    def release(self) -> None:
        """Release the lock; without effect if it has been released."""
        self._release()


def _locked(path: Path) -> int:
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            _lock(file, path.parent)
            # Another run may have removed it with its own lock since it was opened.
            if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
                # The lock holds without the id of the process; a full disk fails the files.
                with suppress(OSError):
                    os.truncate(file, 0)
                    os.write(file, f"{os.getpid()}\n".encode())
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _lock(file: int, directory: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        pid = os.pread(file, _LONGEST_PID, 0).decode(errors="replace").strip()
        process = f"process {pid}" if pid.isdecimal() else "another process"
        raise UsageError(f"{directory} is in use: a run of {process} writes to it") from error
    except OSError:
        # Some file systems have no locks. There, runs are not kept apart.
        pass


def _released(path: Path, file: int, owner: int) -> None:
    # Removed first: a process that opens it from now on gets a file of its own. A child of `fork`
    # has a copy of this object, and must not remove the lock of its parent.
    if os.getpid() == owner:
        with suppress(OSError):
            path.unlink()
    os.close(file)
