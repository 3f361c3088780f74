"""Ctrl-C ends the start of a command without a traceback; the command itself handles it."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernbench.cli.own_process import own_process

ROOT = Path(__file__).parents[4]
INTERRUPTED_IMPORT = """
import os, runpy, signal, sys

class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == "kernbench":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@pytest.fixture
def _settings_of_the_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    handler, threshold = signal.getsignal(signal.SIGINT), gc.get_threshold()
    monkeypatch.setattr(os, "environ", dict(os.environ))
    yield
    signal.signal(signal.SIGINT, handler)
    gc.set_threshold(*threshold)
    gc.unfreeze()


def interrupted(handler: signal.Handlers) -> tuple[int, str]:
    """`launch.py`, which gets SIGINT while it imports `kernbench`: exit code and errors."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT, str(ROOT / "launch.py"), "list"],
        preexec_fn=lambda: signal.signal(signal.SIGINT, handler),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.slow
def test_ctrl_c_during_the_imports_is_no_traceback():
    assert interrupted(signal.SIG_DFL) == (-signal.SIGINT, "")


@pytest.mark.slow
def test_an_ignored_ctrl_c_stays_ignored():
    code, errors = interrupted(signal.SIG_IGN)
    assert code != -signal.SIGINT
    assert "KeyboardInterrupt" not in errors


@pytest.mark.usefixtures("_settings_of_the_process")
@pytest.mark.parametrize(
    ("before", "within"),
    [
        (signal.SIG_DFL, signal.default_int_handler),
        (signal.SIG_IGN, signal.SIG_IGN),
    ],
)
def test_the_command_handles_ctrl_c_unless_it_is_ignored(before: signal.Handlers, within: object):
    signal.signal(signal.SIGINT, before)
    with own_process():
        assert signal.getsignal(signal.SIGINT) == within
