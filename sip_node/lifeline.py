"""Ends an LP when its coordinator has ended: no LP outlives its run.

A daemon thread watches for the end and exits this process at once. The thread works while the main
thread computes or waits for a peer that will never send, which is why the control protocol alone
cannot do this.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from runtime.core.wallclock import sleep_s
from runtime.wire.environment import coordinator_pid, run_directory

EXIT_ORPHANED = 70
"""Exit code of an LP that ended because its coordinator did."""
_PERIOD_S = 0.2


def follow_parent() -> None:
    """End this process soon after the coordinator that started it.

    Without effect in an LP that joined by hand.
    """
    pid = coordinator_pid()
    if pid is not None:
        follow(lambda: is_orphan(pid))


def follow(gone: Callable[[], bool], released: Event | None = None) -> Thread:
    """End this process when `gone()` is true, unless `released` is set first.

    `gone` is called in a loop; each call may block for a fraction of a second. The returned thread
    ends when `released` is set.
    """
    thread = Thread(
        target=_end_with, args=(gone, released or Event()), name="lifeline", daemon=True
    )
    thread.start()
    return thread


def is_orphan(pid: int) -> bool:
    """Whether the parent `pid` of this process has ended; it blocks for a moment if not."""
    # An orphan is adopted by init or a subreaper. A test whether `pid` still exists would fail when
    # the number is used again.
    if os.getppid() != pid:
        return True
    sleep_s(_PERIOD_S)
    return False


def _end_with(gone: Callable[[], bool], released: Event) -> None:
    while not gone():
        if released.is_set():
            return
    if not released.is_set():
        # The coordinator can no longer remove its directory, with the socket files in it.
        _remove(run_directory())
        # The main thread may be inside a C call, and a clean exit would wait for it.
        os._exit(EXIT_ORPHANED)


def _remove(directory: Path | None) -> None:
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)
