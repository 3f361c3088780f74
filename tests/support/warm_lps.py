"""Processes of LPs in tens of milliseconds: forks of a process that has imported the simulator.

An LP imports for half a second, of a run that takes a tenth; one of a program of PyTorch imports
for three more. Where the import itself, or how Python starts, is what is tested, the run is
`launched`.
"""

import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from unittest.mock import patch

from coordinator.launch import launcher
from coordinator.launch.launcher import InterpreterLauncher
from runtime.wire.environment import COORDINATOR_PID
from tests.support.forks import Fork, fork_server


@contextmanager
def warm_lps(imported: str = "") -> Generator[None]:
    """LPs which launchers start meanwhile are forks of a server that has `imported` a package."""
    processes = SimpleNamespace(
        Popen=partial(_started, imported),
        PIPE=subprocess.PIPE,
        DEVNULL=subprocess.DEVNULL,
        TimeoutExpired=subprocess.TimeoutExpired,
    )
    with patch.object(launcher, "subprocess", processes):
        yield


def _started(
    imported: str,
    command: Sequence[str],
    *,
    pass_fds: Sequence[int],
    env: Mapping[str, str],
    stdin: int | None,
    stdout: int | None,
    stderr: int | None,
    process_group: int | None,
) -> "Fork | subprocess.Popen[bytes]":
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
    server = fork_server(env, imported)
    # An LP ends after its parent, and that is the server.
    return server.fork(
        ("-m", "sip_node", *command[len(usual) :]),
        {**env, COORDINATOR_PID: str(server.pid)},
        pass_fds,
        None if stdout is not None else (0, 1, 2),
    )
