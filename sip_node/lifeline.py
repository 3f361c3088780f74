"""Ends an LP when its coordinator has ended: no LP outlives its run, and it prints why it ends.

A daemon thread watches for the end and exits this process at once. The thread works while the main
thread computes or waits for a peer that will never send, which is why the control protocol alone
cannot do this.
"""

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import NoReturn

from runtime.core.host_directory import HostDirectory
from runtime.core.simtime import format_ps
from runtime.core.wallclock import sleep_s
from runtime.wire.environment import coordinator_pid

EXIT_ORPHANED = 70
"""Exit code of an LP that ended because its coordinator did."""
_PERIOD_S = 0.2


def _unknown_ps() -> int | None:
    return None


class Ending:
    """The end of this process: its directory and its last line.

    `directory` is the private directory of a run, which the last process removes. A process that a
    launcher has started has a `name`, such as `LP 3 (rank 3) on node17`, and prints a line with it;
    for the child of a coordinator, that prints what happened. `now_ps` returns the simulated time.
    """

    def __init__(self, directory: Path | None = None, name: str = "") -> None:
        self.name = name
        self.now_ps: Callable[[], int | None] = _unknown_ps
        self._directory, self._has_said = directory, False
        self.shared: HostDirectory | None = None

    def say(self, reason: str) -> None:
        """Print why this process ends early, in one line; a later reason follows from the first."""
        if self.name and not self._has_said:
            self._has_said = True
            now_ps = self.now_ps()
            time = "" if now_ps is None else f" at {format_ps(now_ps)}"
            # The reader of the line may have ended as well.
            with suppress(OSError, ValueError):
                sys.stderr.write(f"kernbench: {self.name} ends{time}: {reason}\n")
                sys.stderr.flush()

    def leave(self, *, failed: bool) -> None:
        """Leave the directory that this process shares with others of its host.

        After a run that has failed it is removed, since one of them may be stopped.
        """
        if self.shared is not None and failed:
            self.shared.abandon()
        elif self.shared is not None:
            self.shared.leave()

    def at_once(self, reason: str, code: int = EXIT_ORPHANED) -> NoReturn:
        """End from any thread, even while the main thread is in a C call."""
        self.say(reason)
        # The coordinator can no longer remove its directory, with the socket files in it.
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        self.leave(failed=True)
        # The main thread may be inside a C call, and a clean exit would wait for it.
        os._exit(code)


def follow_parent(ending: Ending) -> None:
    """End this process soon after the coordinator that started it.

    Without effect in an LP that joined by hand.
    """
    pid = coordinator_pid()
    if pid is not None:
        follow(lambda: "its coordinator has ended" if is_orphan(pid) else "", ending)


def follow(gone: Callable[[], str], ending: Ending, released: Event | None = None) -> Thread:
    """End this process when `gone()` returns a reason, unless `released` is set first.

    `gone` is called in a loop; each call may block for a fraction of a second. The returned thread
    ends when `released` is set.
    """
    thread = Thread(
        target=_end_with, args=(gone, ending, released or Event()), name="lifeline", daemon=True
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


def _end_with(gone: Callable[[], str], ending: Ending, released: Event) -> None:
    while not (reason := gone()):
        if released.is_set():
            return
    if not released.is_set():
        ending.at_once(reason)
