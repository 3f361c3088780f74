"""No LP outlives its coordinator: a daemon thread watches for the end of it and ends this process
at once.

The thread works while the main thread computes or waits for a peer that will never answer, which is
why the coordinator's absence is not left to the control protocol.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from runtime.core.wallclock import sleep_s
from runtime.wire.environment import coordinator_pid, run_directory

EXIT_ORPHANED = 70
"""Egress code of an LP that ended because its coordinator did."""
_PERIOD_S = 0.2


def follow_parent() -> None:
    """End this process soon after the coordinator that started it; without effect in an LP that
    joined by hand.
    """
    pid = coordinator_pid()
    if pid is not None:
        follow(lambda: _orphaned(pid))


def follow(gone: Callable[[], bool], released: Event | None = None) -> Thread:
    """End this process when `gone()` is true, unless `released` is set first, which ends the
    returned thread.

    `gone` is called again and again; each call may block for a fraction of a second.
    """
    thread = Thread(
        target=_end_with, args=(gone, released or Event()), name="lifeline", daemon=True
    )
    thread.start()
    return thread


def _orphaned(pid: int) -> bool:
    # An orphan is adopted by init or a subreaper. Asking whether `pid` still exists would be fooled
    # by its reuse.
    if os.getppid() != pid:
        return True
    sleep_s(_PERIOD_S)
    return False


def _end_with(gone: Callable[[], bool], released: Event) -> None:
    while not gone():
        if released.is_set():
            return
    if not released.is_set():
        _remove(run_directory())
        # The main thread may be anywhere, also inside a C call: a clean exit would wait for it.
        os._exit(EXIT_ORPHANED)


def _remove(directory: Path | None) -> None:
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)
