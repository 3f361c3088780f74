"""Reports that the program of a rank computes: the LP itself sends nothing until it waits again.

A report states whether the process imports a module: that may take minutes, and is no endless loop.
The stack of the program's thread would show it as well. But a frame that another thread looks at
outlives its function, with all tensors in its local variables: their memory would be free at a
moment that depends on the wall clock, and so would the addresses of later tensors.
"""

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Protocol

from runtime.core.wallclock import now_s
from runtime.wire.control import RankActivity

PERIOD_S = 0.5
"""Time between two reports, and the time from which on a program counts as busy."""


def imports_module() -> bool:
    """Whether a module of this process is being executed by an import."""
    return any(_is_initializing(module) for module in list(sys.modules.values()))


def _is_initializing(module: object) -> bool:
    # Not by `getattr` on the module, which may have a `__getattr__` of its own.
    spec = getattr(module, "__dict__", {}).get("__spec__")
    return getattr(spec, "_initializing", False) is True


class Send(Protocol):
    """Sends a report."""

    def __call__(
        self, stretch_s: float, ranks: tuple[RankActivity, ...], /, *, imports: bool
    ) -> None:
        """A program computes for `stretch_s`; whether it imports a module."""
        ...


@contextmanager
def busy_reports(
    stretch_s: Callable[[], float],
    ranks: Callable[[], Sequence[RankActivity]],
    send: Send,
    imports: Callable[[], bool] = imports_module,
) -> Generator[None]:
    """Call `send` in another thread every `PERIOD_S` while a program of this thread is busy.

    `stretch_s()` is how long the running program has not waited, 0 if none runs, and `imports()`
    whether it imports a module. All are called in the other thread.
    """
    left = Event()

    def report() -> None:
        while not left.wait(PERIOD_S):
            stretch = stretch_s()
            if stretch >= PERIOD_S:
                send(stretch, tuple(ranks()), imports=imports())

    thread = Thread(target=report, name="busy reports", daemon=True)
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()


@contextmanager
def start_reports(send: Send) -> Generator[None]:
    """Call `send` in another thread while this LP builds its chips and imports its program.

    The coordinator of an LP on another host cannot read the processor time of its process.
    """
    began_s = now_s()
    with busy_reports(lambda: now_s() - began_s, tuple, send, lambda: True):
        yield
