"""The end of a process whose run has ended without it: it removes its files and prints why."""

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from runtime.core.host_directory import HostDirectory
from runtime.core.simtime import format_ps

EXIT_ORPHANED = 70
"""Exit code of an LP that ended because its coordinator did."""


def _unknown_ps() -> int | None:
    return None


class Ending:
    """How this process ends.

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
