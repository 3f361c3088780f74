"""The line of the heading which a run of a launcher has in addition: the SIPs of each host."""

from coordinator.launch.placement import Placement
from coordinator.report.tables import hosts_line
from coordinator.watch.watch import RunObserver
from runtime.core.output import print_lines
from runtime.wire.control import Status


class HeadingOfHosts:
    """Prints the line as soon as all processes have joined; `observer` observes the run as well."""

    def __init__(self, observer: RunObserver) -> None:
        self._observer = observer

    def launched(self, pids: tuple[int, ...]) -> None:
        """Every process has been started."""
        self._observer.launched(pids)

    def placed(self, placement: Placement, sips_of_lp: tuple[tuple[int, ...], ...]) -> None:
        """Every process has joined."""
        if placement.names != ("",):
            print_lines([hosts_line(placement, sips_of_lp)])
        self._observer.placed(placement, sips_of_lp)

    def status(self, status: Status, sips: tuple[int, ...]) -> None:
        """An LP reported its simulated time and its number of events."""
        self._observer.status(status, sips)

    def ended(self) -> None:
        """The run has ended."""
        self._observer.ended()
