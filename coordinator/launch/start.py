"""The start of the processes of one run, which may begin before the run has a plan.

A process imports for longer than the command takes to read its files. So the command line starts
processes as soon as it can guess their number, and reads the files meanwhile. What the guess got
wrong is corrected when the plan is known, and costs time only.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from os import getpid
from typing import Self

from coordinator.launch.children import Children
from coordinator.launch.directory import RunDirectory
from coordinator.launch.launcher import Launcher, LpSpec
from coordinator.launch.limits import require_limits
from runtime.core.rng import fresh_run_id
from runtime.core.wallclock import now_s


class Launch:
    """The processes of a run, and what they need to join it: an id and a private directory.

    `began_s` is the time from which the start of the run is counted, by default now. Leaving the
    context ends the processes and removes the directory.
    """

    def __init__(self, launcher: Launcher, began_s: float | None = None) -> None:
        self.began_s = now_s() if began_s is None else began_s
        self.run_id = fresh_run_id()
        self._own = RunDirectory()
        self.directory: AbstractContextManager[object] = self._own
        self.children = Children(launcher)
        self._specs: dict[int, LpSpec] = {}

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoints at which the coordinator listens."""
        return (self._own.control_endpoint,)

    def bound(self, endpoints: Sequence[str]) -> None:
        """The coordinator listens at `endpoints`."""

    def start(self, procs: int, at_most: int | None = None) -> None:
        """Start those of the `procs` processes that do not run yet, or the first `at_most` ones.

        A process that was started for another number of processes ends if it does not fit. Raises
        `UsageError` if the limits of the shell are too low.
        """
        require_limits(procs)
        for lp in list(self._specs):
            if self._specs[lp] != self._spec(lp, procs) or lp >= procs:
                self.children.discard(lp)
                del self._specs[lp]
        for lp in range(procs if at_most is None else min(procs, at_most)):
            if lp not in self._specs:
                self._specs[lp] = self._spec(lp, procs)
                self.children.start(self._specs[lp])

    def _spec(self, lp: int, procs: int) -> LpSpec:
        return LpSpec(
            control_endpoint=self._own.control_endpoint,
            run_id=self.run_id,
            lp=lp,
            lone=procs == 1,
            directory=self._own.path,
            coordinator_pid=getpid(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.children.__exit__()
        self.directory.__exit__(None, None, None)
