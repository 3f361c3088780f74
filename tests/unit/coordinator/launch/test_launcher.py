"""A process that cannot be started is an error of the user in one line."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.launch.launcher import InterpreterLauncher, LpSpec
from runtime.core.errors import UsageError


def test_a_user_with_too_many_processes_gets_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        # What `fork` raises at the limit.
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", refused)
    spec = LpSpec("ipc:///none", "0" * 32, 3, lone=False, directory=Path(), coordinator_pid=1)
    with pytest.raises(UsageError) as caught:
        InterpreterLauncher().start(spec)
    assert str(caught.value) == (
        "cannot start the process of LP 3: Resource temporarily unavailable; ulimit -u limits the "
        "processes and threads of a user"
    )


@pytest.mark.parametrize("has_descriptors", [True, False])
def test_the_exit_of_a_process_is_waited_for(
    has_descriptors: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not has_descriptors:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    spec = LpSpec("ipc:///none", "0" * 32, 0, lone=False, directory=Path(), coordinator_pid=1)
    waiting = "import sys, time\nwhile True: time.sleep(1)"
    child = InterpreterLauncher((sys.executable, "-c", waiting)).start(spec)

    assert child.wait(0.0) is None
    assert child.wait(0.01) is None
    child.kill()
    assert child.wait(60.0) == -9
    assert child.wait(0.0) == -9
