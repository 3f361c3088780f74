"""Threads that write files, until all are written or the rest is given up."""

from collections.abc import Callable
from threading import Event, Thread


class GivenUpError(Exception):
    """The rest of the files is given up: ends a thread that writes one."""


class Writing:
    """The writing of files that belong together. Many are large, and written in pieces."""

    def __init__(self) -> None:
        self._is_given_up = Event()

    def check(self) -> None:
        """Called before each piece. Raises `GivenUpError` after `give_up`."""
        if self._is_given_up.is_set():
            raise GivenUpError

    def give_up(self) -> None:
        """Write no more pieces. Safe in every thread."""
        self._is_given_up.set()


class WriterThread:
    """A thread that executes `write`, from now on."""

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run)
        self._thread.start()

    def wait(self) -> None:
        """Wait for its end. Raises what `write` has raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._write()
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            self._error = error
