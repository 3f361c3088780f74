"""The private directory which processes of one run share on one host; the last of them removes it.

A launcher starts the processes, so none of them can own the directory. Each holds a shared lock
(`flock`) of it while it takes part. The system releases the locks of a process that ends for any
reason. A process that obtains the exclusive lock is alone, and removes the directory.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from stat import S_ISDIR

from runtime.core.errors import UsageError
from runtime.core.rng import fresh_run_id

PREFIX = "kernbench-node-"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NETWORK = Path("/proc/self/ns/net")
_TMP = Path("/tmp")  # noqa: S108 - the directory in it is private: it has mode 0700
_MAX_SOCKET_PATH_BYTES = 100
_LONGEST_NAME = f"{PREFIX}0123456789abcdef/control.sock"
_SECRET = "secret"  # noqa: S105 - the name of a file
_LEADER = "leader"


def socket_folder() -> Path:
    """The folder for temporary files, or `/tmp` where its path is too long for sockets."""
    try:
        folder = Path(tempfile.gettempdir())
    except FileNotFoundError:
        # Python tries to write a file there. On a full disk or under a limit of file sizes there
        # is no room for it, but a directory and sockets need none.
        folder = Path(os.environ.get("TMPDIR") or _TMP)
    longest = len(os.fsencode(folder / _LONGEST_NAME))
    return folder if longest <= _MAX_SOCKET_PATH_BYTES else _TMP


def machine_key() -> str:
    """The same text in all processes of this machine since it was started."""
    return blake2b(_text(_BOOT_ID).encode(), digest_size=8).hexdigest()


def host_key() -> str:
    """The same text in all processes of this user that share memory, network and temporary files.

    Containers of one machine may share some of these and not others; then they are two hosts.
    """
    parts = [_text(_BOOT_ID), str(os.getuid())]
    with suppress(OSError):
        parts.append(str(_NETWORK.stat().st_ino))
    with suppress(OSError):
        status = socket_folder().stat()
        parts.append(f"{status.st_dev}:{status.st_ino}")
    return blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()


def shared_path(run: str) -> Path:
    """The directory of the processes of this host that take part in `run`, any text."""
    name = blake2b(f"{host_key()}\n{run}".encode(), digest_size=8).hexdigest()
    return socket_folder() / f"{PREFIX}{name}"


class HostDirectory:
    """The directory `path`, which is created where there is none; `leave` it at the end.

    `lock` is an open file with its lock, which a program before this one in the same process has
    left open. Raises `UsageError` if the directory cannot be created, or belongs to another user.
    """

    def __init__(self, path: Path, lock: int | None = None) -> None:
        self.path = path
        self._leader: int | None = None
        self._lock = lock
        if lock is not None:
            os.set_inheritable(lock, False)  # noqa: FBT003 - positional only
        while self._lock is None:
            try:
                self._lock = _joined(path)
            except OSError as error:
                raise UsageError(f"TMPDIR: cannot create {path}: {error.strerror}") from error

    def secret(self) -> str:
        """A secret that the first process has written here, and all others read."""
        file = self.path / _SECRET
        own = self.path / f"{_SECRET}-{os.getpid()}"
        own.touch(mode=0o600)
        own.write_text(fresh_run_id(), "ascii")
        # A link is made at once and only if there is none: no process reads half a secret.
        with suppress(FileExistsError):
            os.link(own, file)
        own.unlink()
        return file.read_text("ascii")

    def lead(self) -> bool:
        """Whether this process is the only one here that leads; it leads until it leaves."""
        self._leader = os.open(self.path / _LEADER, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._leader, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def keep_over_exec(self) -> int:
        """The open file with the lock, which the next program of this process inherits."""
        assert self._lock is not None, "the directory has not been left"
        os.set_inheritable(self._lock, True)  # noqa: FBT003 - positional only
        return self._lock

    def leave(self) -> None:
        """Release the directory, and remove it if no other process is in it; again, nothing."""
        lock, self._lock = self._lock, None
        if lock is None:
            return
        if self._leader is not None:
            os.close(self._leader)
        fcntl.flock(lock, fcntl.LOCK_UN)
        remove_if_unowned(self.path)
        os.close(lock)

    def abandon(self) -> None:
        """Remove the directory and leave it: its run has ended, although processes may be in it."""
        # Another run may have the same path by now.
        if self._lock is not None and _is_same(self._lock, self.path):
            shutil.rmtree(self.path, ignore_errors=True)
        self.leave()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.abandon()


def remove_if_unowned(path: Path) -> None:
    """Remove a directory that no process has locked."""
    try:
        # O_NOFOLLOW: a symbolic link with our prefix must not lead the removal elsewhere.
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        # If the lock is held, an owner is alive: BlockingIOError, and the directory stays.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError:
        pass
    finally:
        os.close(lock)


def _joined(path: Path) -> int | None:
    """A descriptor with a shared lock of the directory; None if it was removed meanwhile."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    status = os.fstat(lock)
    if not S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        os.close(lock)
        raise UsageError(f"TMPDIR: {path} is not a private directory of this user")
    try:
        # No other process is in it: the files are those of a run that was killed.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for left in path.iterdir():
            left.unlink()
    except BlockingIOError:
        pass
    # A process that is faster may clear the directory once more, in which nothing is yet.
    fcntl.flock(lock, fcntl.LOCK_SH)
    if _is_same(lock, path):
        return lock
    os.close(lock)
    return None


def _is_same(lock: int, path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock), path.stat())
    return False


def _text(file: Path) -> str:
    try:
        return file.read_text("ascii").strip()
    except OSError:
        return ""
