"""A run of the command in directories of its own, all of whose processes and files are seen."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import IO, Self

from tests.chaos.programs import Program, Undisturbed
from tests.support.runs import ROOT

POLL_S = 0.01
_SHARED_MEMORY = Path("/dev/shm")
_OURS = ("kernbench", "psm_")
_LP = re.compile(rb"\0-m\0sip_node\0.*\0--lp\0(\d+)\0", re.DOTALL)
_STARTED = signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM


class _Text:
    """Text from a pipe until all of its writers have ended."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        self._content = b""
        self._pipe = pipe
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def read(self) -> str:
        self._thread.join()
        return self._content.decode(errors="replace")

    def _read(self) -> None:
        with self._pipe:
            self._content = self._pipe.read()


class DisturbedRun:
    """`python launch.py <words>`, started now; leaving the context ends what is left of it."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        *,
        environment: Mapping[str, str | None] | None = None,
        prefix: Sequence[str] = (),
        prepare: Callable[[], object] | None = None,
    ) -> None:
        self.temp, self.out, self.where = folder / "t", folder / "0001-out", folder / "cwd"
        for path in (self.temp, self.where):
            # A mount may be there already.
            path.mkdir(exist_ok=True)
            path.chmod(0o777)
        self._shared_memory = _shared_memory()
        self._folder = folder
        variables = os.environ | {"TMPDIR": str(self.temp), "KERNBENCH_CHAOS": str(folder)}
        for name, value in (environment or {}).items():
            variables.pop(name, None)
            if value is not None:
                variables[name] = value

        def prepare_process() -> None:
            # A shell without job control starts its background processes with some of them ignored.
            for signum in _STARTED:
                signal.signal(signum, signal.SIG_DFL)
            if prepare is not None:
                prepare()

        self.began_s = time.monotonic()
        # Pipes and no files: a limit of file sizes holds for the standard output as well.
        self.process = subprocess.Popen(
            [*prefix, sys.executable, str(ROOT / "launch.py"), "--out", str(self.out), *words],
            env=variables,
            cwd=self.where,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=prepare_process,  # noqa: PLW1509 - no thread of this process has a lock
        )
        self._texts = [_Text(self.process.stdout), _Text(self.process.stderr)]

    @property
    def stdout(self) -> str:
        """Standard output of the command, after its end."""
        return self._texts[0].read()

    @property
    def stderr(self) -> str:
        """Standard error of the command and its processes."""
        return self._texts[1].read()

    @property
    def lps(self) -> dict[int, int]:
        """The process ids of the LPs that run, by LP."""
        found = dict[int, int]()
        for pid in self.processes():
            lp = _LP.search(_read(pid, "cmdline"))
            if lp and pid != self.process.pid:
                found[int(lp[1])] = pid
        return found

    def processes(self) -> list[int]:
        """The processes that have the environment of this run, however they were started."""
        mark = f"KERNBENCH_CHAOS={self._folder}\0".encode()
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
        return [pid for pid in pids if mark in _read(pid, "environ")]

    def wait(self, limit_s: float) -> bool:
        """Whether all processes of the run have ended within `limit_s` from now."""
        until_s = time.monotonic() + limit_s
        while self.process.poll() is None or self.processes():
            if time.monotonic() > until_s:
                return False
            time.sleep(POLL_S)
        return True

    def left(self) -> list[str]:
        """The files of the run outside of its run directory."""
        shared = sorted(_shared_memory() - self._shared_memory)
        return [*(path.name for path in self.temp.iterdir()), *shared]

    def states(self) -> str:
        """The processes that still run, one a line."""
        words = {pid: _read(pid, "cmdline").replace(b"\0", b" ") for pid in self.processes()}
        lines = (
            f"still runs: {pid} {text.decode(errors='replace')[-200:]} {_read(pid, 'wchan')!r}"
            for pid, text in words.items()
        )
        return "\n".join(lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self.process.poll() is None or self.processes():
            for pid in self.processes():
                send(pid, signal.SIGKILL)
            # Not after its end: its number may be that of another process then.
            if self.process.poll() is None:
                self.process.kill()
            time.sleep(POLL_S)


def undisturbed(program: Program) -> Undisturbed:
    """Run `program` to its end, on a machine as busy as it is now."""
    with (
        tempfile.TemporaryDirectory(prefix="kb-") as folder,
        DisturbedRun(program.words, Path(folder)) as run,
    ):
        if not run.wait(300) or run.process.returncode:
            raise RuntimeError(f"{program} fails undisturbed:\n{run.stdout}{run.stderr}")
        return Undisturbed(digest_of(run.stdout), time.monotonic() - run.began_s)


def digest_of(out: str) -> str:
    """The digest that a run prints, or nothing."""
    line = re.search(r"^digest +([0-9a-f]+)$", out, re.MULTILINE)
    return line[1] if line else ""


def send(pid: int, signum: int) -> bool:
    """Send a signal; whether the process was there."""
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        return False
    return True


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _shared_memory() -> set[str]:
    if not _SHARED_MEMORY.is_dir():
        return set()
    return {path.name for path in _SHARED_MEMORY.iterdir() if path.name.startswith(_OURS)}
