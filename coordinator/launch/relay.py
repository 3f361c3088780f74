"""Relays the output of the LPs by whole lines, so that ranks never share a line."""

import sys
from collections.abc import Callable
from threading import Thread
from typing import IO, TextIO

_DRAIN_S = 1.0


class Relay:
    """Copies the standard output and error of a process to ours until the process closes them."""

    def __init__(self, output: IO[bytes], errors: IO[bytes]) -> None:
        # A live display may replace sys.stdout while it is shown: look it up for every line.
        self._threads = [
            Thread(
                target=_copy_lines,
                args=(output, lambda: sys.stdout),
                name="relay of stdout",
                daemon=True,
            ),
            Thread(
                target=_copy_lines,
                args=(errors, lambda: sys.stderr),
                name="relay of stderr",
                daemon=True,
            ),
        ]
        for thread in self._threads:
            thread.start()

    def drain(self) -> None:
        """Wait until everything is copied, at most a second per stream.

        The limit matters when the rank started a process of its own, which keeps the pipe open.
        """
        while self._threads:
            self._threads.pop().join(_DRAIN_S)


def _copy_lines(source: IO[bytes], target: Callable[[], TextIO]) -> None:
    closed = False
    with source:
        for line in source:
            if closed:
                continue
            try:
                target().write(line.decode(errors="replace").rstrip("\n") + "\n")
                target().flush()
            except OSError:
                # Our reader is gone (`| head`), or the disk is full. Reading continues: a full pipe
                # would block the rank. The report, printed to the same stream, has the error.
                closed = True
