"""Work beside the main thread of the command, and an end of it before all is done."""

from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import Any, Generic, TypeVar

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
    """A call of `function` in a thread of its own, when the tasks `after` have ended."""

    def __init__(self, function: Callable[[], _T], after: "Sequence[Task[Any]]" = ()) -> None:
        self._function = function
        self._after = after
        self._results: list[_T] = []
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run)
        self._thread.start()

    def join(self) -> None:
        """Wait for its end, whether `function` returns or raises."""
        self._thread.join()

    def wait(self) -> _T:
        """Wait for the end; the value that `function` returns, or the error that it raises."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self) -> None:
        for task in self._after:
            task.join()
        try:
            self._results.append(self._function())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            self._error = error
