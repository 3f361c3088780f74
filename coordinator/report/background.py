"""Work beside the main thread of the command, and an end of it before all is done."""

from collections.abc import Callable
from threading import Event, Thread
from typing import Generic, TypeVar

_T = TypeVar("_T")


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


class Task(Generic[_T]):
    """A call of `function` in a thread of its own, from now on."""

    def __init__(self, function: Callable[[], _T]) -> None:
        self._function = function
        self._results: list[_T] = []
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run)
        self._thread.start()

    def wait(self) -> _T:
        """What `function` returns, or raises."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._function())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            self._error = error
