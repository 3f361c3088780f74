"""Limits of the system and of the environment: a right result, or one clear line."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.disturbed_run import DisturbedRun, digest_of
from tests.chaos.outcome import Outcome
from tests.chaos.programs import Program, Undisturbed

PROGRAM = Program(("--sips=2", "--bench=qkv-gemm"), 2)
LONG = Program(("--sips=2", "--bench=ccl-allreduce", "--algorithm=ring", "--max-bytes=1048576"), 2)
_LIMIT_S = 120.0
_AS_NOBODY = (
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
    *("--inh-caps=+dac_override", "--ambient-caps=+dac_override"),
)
"""Limits of processes hold for other users than root. The files of the checkout may be private."""
_TINY_DISK = 'mkdir -p $0 && mount -t tmpfs -o size=$1 none $0 && shift && exec "$@"'


@dataclass(frozen=True)
class Limit:
    """Limit of a run. `error` is what its line contains; None if only a result is right.

    With `may_succeed` a right result is as good as the line. `disk` is where a disk of `disk_bytes`
    is mounted, in a name space of the run.
    """

    name: str
    prepare: Callable[[], object] | None = None
    error: str | None = None
    may_succeed: bool = False
    environment: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    by_library: bool = False
    """The line is of a library that is loaded before kernbench can check anything."""
    program: Program = PROGRAM
    other_user: bool = False
    disk: str = ""
    disk_bytes: int = 0
    hides: tuple[str, ...] = ()
    """`out` or `err`, for a stream that cannot show anything."""
    is_silent: bool = False
    """The exit code alone shows the failure: 141 after the reader has ended, as of any command."""


def _limited(kind: int, soft: int, hard: int | None = None) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (soft, soft if hard is None else hard))


def _closed(*files: int) -> Callable[[], None]:
    def close() -> None:
        for file in files:
            os.close(file)

    return close


def _full(*files: int) -> Callable[[], None]:
    def redirect() -> None:
        for file in files:
            os.dup2(os.open("/dev/full", os.O_WRONLY), file)

    return redirect


def _ignored_children() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def _blocked_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def _removed_directory() -> None:
    Path.cwd().rmdir()


def _closed_pipe() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    os.dup2(writing, 1)


LIMITS = (
    Limit("24 open files", _limited(resource.RLIMIT_NOFILE, 24), "ulimit -n is 24 open files"),
    Limit("few open files, which a run may raise", _limited(resource.RLIMIT_NOFILE, 24, 4096)),
    Limit("500,000 KiB of addresses", _limited(resource.RLIMIT_AS, 500_000 << 10), "ulimit -v is "),
    Limit(
        "1,100,000 KiB of addresses",
        _limited(resource.RLIMIT_AS, 1_100_000 << 10),
        "",
        may_succeed=True,
    ),
    Limit(
        "60 MiB of data",
        _limited(resource.RLIMIT_DATA, 60 << 20),
        "OpenBLAS error: Memory allocation",
        by_library=True,
    ),
    Limit("no file may grow", _limited(resource.RLIMIT_FSIZE, 0), "File too large"),
    Limit("files of 64 KiB", _limited(resource.RLIMIT_FSIZE, 64 << 10), "File too large"),
    Limit(
        "1 process",
        _limited(resource.RLIMIT_NPROC, 1),
        "cannot start the process of LP 0: Resource temporarily unavailable",
        other_user=True,
        environment={"HOME": None},
    ),
    Limit("a stack of 256 KiB", _limited(resource.RLIMIT_STACK, 256 << 10), "", may_succeed=True),
    Limit("a stack without limit", _limited(resource.RLIMIT_STACK, resource.RLIM_INFINITY)),
    Limit(
        "2 s of processor time",
        _limited(resource.RLIMIT_CPU, 2, 60),
        "was killed by SIGXCPU",
        program=LONG,
    ),
    Limit("no locked memory", _limited(resource.RLIMIT_MEMLOCK, 0)),
    Limit("a full disk as TMPDIR", error="No space left", disk="t", disk_bytes=4096),
    Limit("a disk of 1 MiB for --out", error="No space left", disk="0001-out", disk_bytes=1 << 20),
    Limit("a TMPDIR that is missing", environment={"TMPDIR": "/tmp/kb-missing"}),
    Limit("a TMPDIR that is too long", environment={"TMPDIR": "/tmp/kb-" + "x" * 90}),
    Limit("a TMPDIR that cannot be written", environment={"TMPDIR": "/proc/self"}),
    Limit("no HOME", environment={"HOME": None}),
    Limit("a HOME that is missing", environment={"HOME": "/nonexistent"}),
    Limit("no PATH", environment={"PATH": None}),
    Limit(
        "a working directory that was removed",
        _removed_directory,
        "working directory has been removed",
    ),
    Limit("a standard input that is closed", _closed(0)),
    Limit("a standard output that is closed", _closed(1), "Bad file descriptor", hides=("out",)),
    Limit("a standard error that is closed", _closed(2), hides=("err",)),
    Limit("all streams closed", _closed(0, 1, 2), "", hides=("out", "err"), is_silent=True),
    Limit("/dev/full as standard output", _full(1), "No space left", hides=("out",)),
    Limit("/dev/full as standard error", _full(2), hides=("err",)),
    Limit("a standard output without reader", _closed_pipe, "", hides=("out",), is_silent=True),
    Limit("SIGCHLD ignored", _ignored_children),
    Limit("all signals blocked", _blocked_signals),
)


def run_within(
    limit: Limit, folder: Path, undisturbed: Callable[[Program], Undisturbed]
) -> Outcome:
    """Run a program under `limit`, and check its result or its line."""
    outcome = Outcome("limits of the system", limit.name)
    prefix = _prefix(limit, folder)
    outcome.skipped = _missing(prefix)
    if outcome.skipped:
        return outcome
    expected = undisturbed(PROGRAM)
    folder.chmod(0o777)
    words, environment = limit.program.words, limit.environment
    with DisturbedRun(
        words, folder, environment=environment, prefix=prefix, prepare=limit.prepare
    ) as run:
        outcome.require(run.wait(_LIMIT_S), run.states())
        # Where TMPDIR cannot be used.
        elsewhere = Path("/tmp").glob(f"kernbench-{run.process.pid}-*")
        left = [*run.left(), *map(str, elsewhere)]
    code = run.process.returncode
    outcome.output = f"exit code {code}\n{run.stdout[-1500:]}\n{run.stderr[-3000:]}"
    outcome.require(not left, f"left: {left}")
    outcome.require_no_traceback(run.stderr)
    if code == 0:
        outcome.require(limit.error is None or limit.may_succeed, "exit code 0")
        digest = expected.digest if "out" in limit.hides else digest_of(run.stdout)
        outcome.require(digest == expected.digest, f"digest {digest!r}")
    else:
        _require_line(outcome, limit, code, run.stderr)
    return outcome


def _require_line(outcome: Outcome, limit: Limit, code: int, errors: str) -> None:
    """Require an exit code other than 0, and one error that has the text of `limit`."""
    outcome.require(limit.error is not None, f"exit code {code}")
    if limit.is_silent:
        outcome.require(not errors, "a line that no user can see, or that explains nothing")
    elif limit.by_library:
        lines = errors.splitlines()
        outcome.require(len(lines) == 1 and str(limit.error) in errors, f"{len(lines)} lines")
    else:
        outcome.require_one_error(code, errors, limit.error or "")


def _prefix(limit: Limit, folder: Path) -> list[str]:
    """A command that mounts a small disk or changes the user, and executes its arguments."""
    if limit.other_user:
        return list(_AS_NOBODY)
    if not limit.disk:
        return []
    script = ["sh", "-c", _TINY_DISK, str(folder / limit.disk), str(limit.disk_bytes)]
    return ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), *script]


def _missing(prefix: list[str]) -> str:
    """Why the limit cannot be set here, or nothing."""
    if not prefix:
        return ""
    if shutil.which(prefix[0]) is None:
        return f"needs {prefix[0]}"
    tried = subprocess.run([*prefix, sys.executable, "-c", ""], capture_output=True, check=False)
    return f"{prefix[0]} needs rights that are missing" if tried.returncode else ""
