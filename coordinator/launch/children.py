"""The processes of a run that this process has started; they are ended with the run."""

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Self

from coordinator.launch.launcher import Child, Launcher, LpSpec

GRACE_S = 1.0
"""Time that the processes of a run that fails have to exit by themselves, then after SIGTERM."""
_KILL_S = 1.0


class Children:
    """The processes of a run, by LP.

    Leaving the context ends them: SIGTERM first, and after `terminate_s` SIGKILL.
    """

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._children: dict[int, Child] = {}
        self.terminate_s = GRACE_S

    def start(self, spec: LpSpec) -> None:
        """Start the process of one LP."""
        self._children[spec.lp] = self._launcher.start(spec)

    def discard(self, lp: int) -> None:
        """End the process of LP `lp`, which has joined no run."""
        child = self._children.pop(lp)
        child.kill()
        child.wait(_KILL_S)

    def pid(self, lp: int) -> int | None:
        """The process id of LP `lp`; None for one that is not a process of this run's own."""
        child = self._children.get(lp)
        return None if child is None else child.pid

    def show_stack(self, lp: int) -> None:
        """Send SIGUSR1 to LP `lp`, which prints the stack of its program, if it is a child here.

        The signal kills a process that has no handler yet. That is no loss: a hung LP is about to
        be ended anyway.
        """
        child = self._children.get(lp)
        if child is not None and child.wait(0.0) is None:
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGUSR1)

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids, by LP."""
        return tuple(self._children[lp].pid for lp in sorted(self._children))

    def exited(self) -> Mapping[int, int]:
        """The exit codes of the LPs whose processes have ended."""
        codes = {lp: child.wait(0.0) for lp, child in self._children.items()}
        return {lp: code for lp, code in codes.items() if code is not None}

    def join(self, lp: int, timeout_s: float) -> int | None:
        """The exit code of LP `lp`, or None if it still runs after `timeout_s`."""
        return self._children[lp].wait(timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # SIGTERM first, for handlers of the user's program. A stopped process needs SIGKILL.
        self._end(lambda child: child.terminate(), self.terminate_s)
        self._end(lambda child: child.kill(), _KILL_S)

    def _end(self, signal_child: Callable[[Child], None], timeout_s: float) -> None:
        running = [child for child in self._children.values() if child.wait(0.0) is None]
        for child in running:
            signal_child(child)
        for child in running:
            child.wait(timeout_s)
