"""Futures of a cluster, whose exceptions mean the same for every engine.

Each engine has its own exceptions for a worker that has died and for a scheduler that has gone. The
driver of the points distinguishes three cases: `LostWorkerError` concerns one task,
`BrokenExecutor` all tasks of the executor, and every other exception is of the function.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from runtime.core.errors import KernbenchError


class LostWorkerError(KernbenchError):
    """A worker has died with its task. Fields: how, how often the engine has tried the task."""

    def __init__(self, how: str, tries: int = 1) -> None:
        super().__init__(how, tries)
        self.how, self.tries = how, tries

    def __str__(self) -> str:
        return self.how


def cluster_future(
    theirs: "Future[Any]", translated: Callable[[BaseException], BaseException]
) -> "Future[Any]":
    """A future with the result of `theirs`, or with its exception, `translated`.

    Only `theirs` is cancelled with it: a cancellation by the engine is an exception.
    """
    ours = Future[Any]()

    def copy(theirs: "Future[Any]") -> None:
        # A future that has been cancelled takes no result.
        if not ours.set_running_or_notify_cancel():
            return
        try:
            ours.set_result(theirs.result())
        except BaseException as error:  # noqa: BLE001 - is raised by the future
            ours.set_exception(translated(error))

    def cancel(ours: "Future[Any]") -> None:
        if ours.cancelled():
            theirs.cancel()

    theirs.add_done_callback(copy)
    ours.add_done_callback(cancel)
    return ours
