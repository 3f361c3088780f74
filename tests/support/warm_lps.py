"""Processes of LPs in tens of milliseconds: forks of a process that has imported the simulator.

An LP imports for half a second, of a run that takes a tenth. A fork is a process as any other, with
the arguments, the environment, the working directory and the files that the launcher gives it; but
it is a child of the server. Where the import itself, or how Python starts, is what is tested, the
run is `launched`.
"""

import atexit
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import IO
from unittest.mock import patch

from coordinator.launch import launcher
from coordinator.launch.launcher import InterpreterLauncher
from runtime.wire.environment import COORDINATOR_PID

_SERVER = Path(__file__).parent / "lp_server.py"
_STARTED_BY = ("PYTHON", "OPENBLAS", "OMP", "NPY", "KERNBENCH_CORE", "LD_")
"""What the names of those variables begin with which count when a process starts and imports."""


@contextmanager
def warm_lps() -> Generator[None]:
    """LPs which launchers start meanwhile are forks of the server."""
    processes = SimpleNamespace(
        Popen=_started,
        PIPE=subprocess.PIPE,
        DEVNULL=subprocess.DEVNULL,
        TimeoutExpired=subprocess.TimeoutExpired,
    )
    with patch.object(launcher, "subprocess", processes):
        yield


def _started(
    command: Sequence[str],
    *,
    pass_fds: Sequence[int],
    env: Mapping[str, str],
    stdin: int | None,
    stdout: int | None,
    stderr: int | None,
    process_group: int | None,
) -> "ForkedLp | subprocess.Popen[bytes]":
    """Start a fork of the server if `command` is that of an LP, else a `subprocess.Popen`."""
    usual = InterpreterLauncher().command
    if tuple(command[: len(usual)]) != usual or process_group is not None:
        return subprocess.Popen(
            command,
            pass_fds=pass_fds,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            process_group=process_group,
        )
    started_by = {name: env[name] for name in sorted(env) if name.startswith(_STARTED_BY)}
    return _server(tuple(started_by.items())).fork(
        command[len(usual) :], env, pass_fds, piped=stdout is not None
    )


class ForkedLp:
    """What a launcher uses of a `Popen`."""

    def __init__(
        self, pid: int, exit_code: int, stdout: IO[bytes] | None, stderr: IO[bytes] | None
    ) -> None:
        self.pid, self.stdout, self.stderr = pid, stdout, stderr
        self._exit_code = os.fdopen(exit_code, "rb")
        self._returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, -n after signal n; raises `TimeoutExpired`."""
        if self._returncode is None:
            if not select.select([self._exit_code], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("sip_node", timeout or 0.0)
            with self._exit_code:
                self._returncode = int.from_bytes(self._exit_code.read(), "little", signed=True)
        return self._returncode

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._signal(15)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._signal(9)

    def _signal(self, number: int) -> None:
        try:
            self.wait(0.0)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, number)


class _Server:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_SERVER), str(theirs.fileno())],
                env=environment,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
            )
        atexit.register(self._close)

    def _close(self) -> None:
        self._requests.close()
        self._process.wait()

    def fork(
        self, arguments: Sequence[str], env: Mapping[str, str], files: Sequence[int], *, piped: bool
    ) -> ForkedLp:
        """An LP. Its standard streams are pipes to this process if `piped`, else the same files."""
        ours, theirs = list[IO[bytes]](), list[int]()
        if piped:
            theirs.append(os.open(os.devnull, os.O_RDONLY))
            for _ in ("stdout", "stderr"):
                reading, writing = os.pipe()
                ours.append(os.fdopen(reading, "rb"))
                theirs.append(writing)
        reading, writing = os.pipe()
        request = {
            "arguments": list(arguments),
            # An LP ends after its parent, and that is the server.
            "environment": {**env, COORDINATOR_PID: str(self._process.pid)},
            "folder": str(Path.cwd()),
            "numbers": [0, 1, 2, *files],
        }
        opened = [*(theirs or (0, 1, 2)), *files, writing]
        socket.send_fds(self._requests, [json.dumps(request).encode()], opened)
        for file in (*theirs, writing):
            os.close(file)
        pid = int.from_bytes(self._requests.recv(8), "little")
        return ForkedLp(pid, reading, *(ours or (None, None)))


@cache
def _server(environment: tuple[tuple[str, str], ...]) -> _Server:
    """The server of this process whose variables are those of `environment`."""
    return _Server(dict(environment))
