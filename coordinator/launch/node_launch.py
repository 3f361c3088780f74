"""The start of a run whose processes a launcher has started, on this host and on others.

The process of rank 0 is the coordinator, and LP 0 is its child. Every other process becomes an LP
by itself, and belongs to its launcher: nothing here sends it a signal.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from os import getpid
from pathlib import Path

from coordinator.launch.children import Children
from coordinator.launch.launcher import Launcher, LpSpec, SiteArguments
from coordinator.launch.limits import require_limits
from coordinator.launch.start import Launch
from runtime.core.host_directory import HostDirectory
from runtime.core.wallclock import now_s


class NodeLaunch(Launch):
    """The start of LP 0 by `launcher`, with `site`; the coordinator binds `control`.

    `publish` announces the endpoint that it has bound. `directory` is the directory of this host,
    where the coordinator is in it.
    """

    def __init__(
        self,
        launcher: Launcher,
        *,
        run_id: str,
        control: str,
        site: SiteArguments,
        directory: HostDirectory | None,
        publish: Callable[[str], None],
    ) -> None:
        self.began_s = now_s()
        self.run_id = run_id
        self.children = Children(launcher)
        self._control, self._site, self._publish = control, site, publish
        self.directory = directory or nullcontext()

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoints at which the coordinator listens."""
        return (self._control,)

    def bound(self, endpoints: Sequence[str]) -> None:
        """The coordinator listens at `endpoints`: LP 0 connects there, and the others learn it."""
        self._control = endpoints[0]
        self._publish(self._control)

    def start(self, procs: int, at_most: int | None = None) -> None:
        """Start LP 0; `at_most` is the number of processes which may start before the plan."""
        if at_most is not None:
            return
        require_limits(procs)
        self.children.start(
            LpSpec(
                control_endpoint=self._control,
                run_id=self.run_id,
                lp=0,
                lone=False,
                directory=Path(self._site.directory),
                coordinator_pid=getpid(),
                site=self._site,
            )
        )
