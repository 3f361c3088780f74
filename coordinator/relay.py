"""What the LPs print, passed on by whole lines: ranks do not share a line, and what comes after them begins on a new one."""

import sys
from collections.abc import Callable
from threading import Thread
from typing import IO, TextIO

_DRAIN_S = 1.0


class Relay:
    """Passes the standard output and error of a process on to ours until it has closed them."""

    def __init__(self, output: IO[bytes], errors: IO[bytes]) -> None:
        # A live display may stand in for sys.stdout while it lasts, so it is looked up for each line.
        self._threads = [
            Thread(
                target=_pass_on,
                args=(output, lambda: sys.stdout),
                name="relay of stdout",
                daemon=True,
            ),
            Thread(
                target=_pass_on,
                args=(errors, lambda: sys.stderr),
                name="relay of stderr",
                daemon=True,
            ),
        ]
        for thread in self._threads:
            thread.start()

    def drain(self) -> None:
        """Wait until all has been passed on, but not for what a process of the rank's own may still print."""
        while self._threads:
            self._threads.pop().join(_DRAIN_S)


def _pass_on(source: IO[bytes], target: Callable[[], TextIO]) -> None:
    gone = False
    with source:
        for line in source:
            if gone:
                continue
            try:
                target().write(line.decode(errors="replace").rstrip("\n") + "\n")
                target().flush()
            except BrokenPipeError:
                # Nobody reads any more, and yet the rank must not stop for it.
                gone = True
