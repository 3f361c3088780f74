"""The load of a link over time, in bins of equal width: at most 512 of them for any run.

The width begins at 1,024 ps and doubles when a service begins behind the last bin; then pairs of
bins are added. So the width follows from the run alone: it is the least for which the bins suffice.

    services   |== a ==| |====== b ======|          bytes, packets and queues of a and b in bin 0
    bins       |     0     |     1     |   2  ...   busy in bin 0: a and a part of b, in 1: the rest
"""

from runtime.core.run_tables import LEAST_BIN_PS, MOST_BINS

LEAST_SHIFT = LEAST_BIN_PS.bit_length() - 1

BinRow = tuple[int, int, int, int, int]
"""Bin, bytes, busy_ps, queued_ps and packets."""
Service = tuple[int, int, int, int, int]
"""Start, end, bytes, queued_ps and packets."""


class TimeBins:
    """The bins of a server, whose services come in their order and do not overlap.

    `shift` is the binary logarithm of the width in picoseconds. `waited_ps` is added to the queue
    of the next service: the time in a queue before that of the server.
    """

    __slots__ = (
        "_busy_ps",
        "_end_ps",
        "_log",
        "_nbytes",
        "_packets",
        "_queued_ps",
        "_rows",
        "shift",
        "waited_ps",
    )

    def __init__(self) -> None:
        self.shift, self.waited_ps = LEAST_SHIFT, 0
        self._rows: list[BinRow] = []
        self._log: list[Service] | None = None
        self._end_ps = self._nbytes = self._busy_ps = self._queued_ps = self._packets = 0

    def add(self, start_ps: int, end_ps: int, nbytes: int, queued_ps: int, packets: int) -> None:
        """Add a service from `start_ps` to `end_ps`."""
        service = start_ps, end_ps, nbytes, queued_ps + self.waited_ps, packets
        self.waited_ps = 0
        if self._log is not None:
            self._log.append(service)
        self.put(service, 0)

    def put(self, service: Service, moved_ps: int) -> None:
        """Put a service into bins, `moved_ps` later."""
        start_ps, end_ps, nbytes, queued_ps, packets = service
        start_ps, end_ps = start_ps + moved_ps, end_ps + moved_ps
        if start_ps >= self._end_ps:
            self._open(start_ps)
        self._nbytes += nbytes
        self._packets += packets
        self._queued_ps += queued_ps
        while end_ps > self._end_ps:
            self._busy_ps += self._end_ps - start_ps
            start_ps = self._end_ps
            self._open(start_ps)
        self._busy_ps += end_ps - start_ps

    def begin_log(self) -> None:
        """Log the services from now on: a fast-forward repeats those of a period."""
        self._log = []

    @property
    def logged(self) -> int:
        """The number of services in the log."""
        return len(self._log or ())

    def end_log(self) -> None:
        """Log no more services, and forget those that are logged."""
        self._log = None

    def template(self, first: int) -> "ServiceTemplate":
        """The services in the log from number `first` on."""
        return ServiceTemplate(self, (self._log or [])[first:])

    @property
    def is_used(self) -> bool:
        """Whether there is a bin that is not empty."""
        return bool(self._rows or self._packets or self._busy_ps)

    def rows(self) -> list[BinRow]:
        """The bins that are not empty."""
        self._close()
        self._end_ps = 0
        return self._rows

    def widen(self, shift: int) -> None:
        """Unite bins until they have the width of `shift`, once all services are added."""
        self._close()
        self._end_ps = 0
        while self.shift < shift:
            self._double()

    def _open(self, time_ps: int) -> None:
        """Begin the bin of a time."""
        self._close()
        while time_ps >> self.shift >= MOST_BINS:
            self._double()
        self._end_ps = ((time_ps >> self.shift) + 1) << self.shift

    def _close(self) -> None:
        if self._packets or self._busy_ps:
            number = (self._end_ps >> self.shift) - 1
            self._append(
                (number, self._nbytes, self._busy_ps, self._queued_ps, self._packets), self._rows
            )
        self._nbytes = self._busy_ps = self._queued_ps = self._packets = 0

    def _double(self) -> None:
        rows, self._rows = self._rows, []
        self.shift += 1
        for number, *load in rows:
            self._append((number >> 1, *load), self._rows)  # type: ignore[arg-type]

    @staticmethod
    def _append(row: BinRow, rows: list[BinRow]) -> None:
        if rows and rows[-1][0] == row[0]:
            number, *load = rows[-1]
            rows[-1] = (number, *map(sum, zip(load, row[1:], strict=True)))  # type: ignore[assignment]
        else:
            rows.append(row)


class ServiceTemplate:
    """The services of a period of a server."""

    __slots__ = ("_bins", "_services")

    def __init__(self, bins: TimeBins, services: list[Service]) -> None:
        self._bins, self._services = bins, services

    def onto(self, bins: TimeBins) -> "ServiceTemplate":
        """The same services, of another server."""
        self._bins = bins
        return self

    def repeat(self, moved_ps: int, period_ps: int, periods: int) -> None:
        """Add these services again, `moved_ps` later, and then one period later each time."""
        for number in range(periods):
            for service in self._services:
                self._bins.put(service, moved_ps + number * period_ps)
