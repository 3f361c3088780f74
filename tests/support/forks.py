"""Processes of tests in tens of milliseconds: forks of a server that has imported what they import.

A fork is a process as any other, with the arguments, the environment, the working directory and the
files that it is given; but it is a child of the server.
"""

import atexit
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

_SERVER = Path(__file__).parent / "fork_server.py"
STARTED_BY = (
    *("PYTHON", "OPENBLAS", "OMP", "NPY", "KERNBENCH_CORE", "LD_", "ATEN", "TORCH_LOGS"),
    # A library of `make sanitize` reads its options when the process starts.
    *("ASAN_OPTIONS", "UBSAN_OPTIONS"),
)
"""Prefixes of the names of variables that count when a process starts and imports."""
Streams = tuple[int, int, int]


class Fork:
    """The methods of a `Popen` that a launcher uses."""

    def __init__(
        self, pid: int, exit_code: int, stdout: IO[bytes] | None, stderr: IO[bytes] | None
    ) -> None:
        self.pid, self.stdout, self.stderr = pid, stdout, stderr
        self._exit_code = exit_code
        self._returncode: int | None = None

    def __del__(self) -> None:
        # A launcher that refuses a run waits for none of them; no file is left to the collector.
        if self._returncode is None:
            os.close(self._exit_code)
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, -n after signal n; raises `TimeoutExpired`."""
        if self._returncode is None:
            if not select.select([self._exit_code], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("fork", timeout or 0.0)
            read = os.read(self._exit_code, 2)
            os.close(self._exit_code)
            self._returncode = int.from_bytes(read, "little", signed=True)
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
            # The server may have waited for it in the meantime.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


class ForkServer:
    """A process of `fork_server.py` that has imported PyTorch where `imported` is `torch`."""

    def __init__(self, environment: Mapping[str, str], imported: str) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            words = (str(theirs.fileno()), *imported.split())
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_SERVER), *words],
                env=environment,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
            )
        self.pid = self._process.pid
        atexit.register(self._close)

    def _close(self) -> None:
        self._requests.close()
        self._process.wait()

    def fork(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        files: Sequence[int] = (),
        streams: Streams | None = (0, 1, 2),
    ) -> Fork:
        """A process that runs `command`: `-m` and a module, or a program, and its arguments.

        Its standard streams are the files `streams`, or pipes to this process where that is None.
        """
        ours, theirs = list[IO[bytes]](), list[int]()
        if streams is None:
            theirs.append(os.open(os.devnull, os.O_RDONLY))
            for _ in ("stdout", "stderr"):
                reading, writing = os.pipe()
                ours.append(os.fdopen(reading, "rb"))
                theirs.append(writing)
        reading, writing = os.pipe()
        request = {
            "command": list(command),
            "environment": dict(env),
            "folder": str(Path.cwd()),
            "numbers": [0, 1, 2, *files],
        }
        opened = [*(streams or theirs), *files, writing]
        socket.send_fds(self._requests, [json.dumps(request).encode()], opened)
        for file in (*theirs, writing):
            os.close(file)
        pid = int.from_bytes(self._requests.recv(8), "little")
        return Fork(pid, reading, *(ours or (None, None)))


def fork_server(environment: Mapping[str, str], imported: str = "") -> ForkServer:
    """The server of this process for forks whose variables are `environment`."""
    started_by = {
        name: environment[name] for name in sorted(environment) if name.startswith(STARTED_BY)
    }
    return _server(tuple(started_by.items()), imported)


@cache
def _server(environment: tuple[tuple[str, str], ...], imported: str) -> ForkServer:
    return ForkServer(dict(environment), imported)
