"""Shows the progress of a run: on a terminal one live line per LP, elsewhere a line every 5 s."""

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from coordinator.watch import RunObserver
from runtime.core.simtime import format_ps
from runtime.core.wallclock import now_s
from runtime.wire.control import Status

PLAIN_PERIOD_S = 5.0


class Pace:
    """Events per second and the share of wall time spent waiting, since the previous report."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since_s = clock()
        self._events = 0
        self._blocked_s = 0.0

    @property
    def age_s(self) -> float:
        """Seconds since the last report."""
        return self._clock() - self._since_s

    def report(self, time_ps: int, events: int, blocked_s: float) -> tuple[str, str, str]:
        """Simulated time, events a second, blocked share."""
        # Two reports can have the same time on a coarse clock.
        elapsed_s = max(self.age_s, 1e-9)
        rate = (events - self._events) / elapsed_s
        blocked = min(1.0, (blocked_s - self._blocked_s) / elapsed_s)
        self._since_s, self._events, self._blocked_s = self._clock(), events, blocked_s
        return format_ps(time_ps), f"{rate:,.0f} events/s", f"blocked {blocked:.0%}"


class PlainProgress:
    """One line every few seconds.

    It has the simulated time of the last LP, the events of all, and the mean blocked share.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = now_s) -> None:
        self._stream = stream
        self._clock = clock
        self._pace = Pace(clock)
        self._lps = 0
        self._latest: dict[tuple[int, ...], Status] = {}

    def launched(self, pids: tuple[int, ...]) -> None:
        """Every process has been started."""
        self._pace = Pace(self._clock)
        self._lps = len(pids)

    def status(self, status: Status, sips: tuple[int, ...]) -> None:
        """An LP reported its simulated time and its number of events."""
        self._latest[sips] = status
        if self._pace.age_s >= PLAIN_PERIOD_S:
            lps = self._latest.values()
            mean_blocked_s = sum(lp.blocked_s for lp in lps) / self._lps
            line = self._pace.report(
                # The LP that is furthest behind determines how far the run is.
                min(lp.time_ps for lp in lps),
                sum(lp.events for lp in lps),
                mean_blocked_s,
            )
            # A run must not end because its progress cannot be shown, for example on a full disk.
            with suppress(OSError):
                print("  ".join(line), file=self._stream, flush=True)

    def ended(self) -> None:
        """The run has ended."""


class LiveProgress:
    """A table that is rewritten in place and removed at the end; printed lines appear above it."""

    def __init__(self, stream: TextIO) -> None:
        # Imported here: rich takes a tenth of a second that runs without a terminal need not pay.
        from rich.console import Console
        from rich.live import Live

        # If the standard output is a file, printed lines must go there and not above the table.
        console, shared = Console(file=stream), sys.stdout.isatty()
        self._live = Live(
            console=console, transient=True, auto_refresh=False, redirect_stdout=shared
        )
        self._paces: dict[int, Pace] = {}
        self._lines: dict[int, tuple[str, str, str, str]] = {}

    def launched(self, pids: tuple[int, ...]) -> None:
        """Every process has been started."""
        self._live.start()
        self._live.update(f"{len(pids)} processes are starting", refresh=True)

    def status(self, status: Status, sips: tuple[int, ...]) -> None:
        """An LP reported its simulated time and its number of events."""
        from rich.table import Table

        label = f"sip {sips[0]}" if len(sips) == 1 else f"sips {sips[0]}-{sips[-1]}"
        pace = self._paces.setdefault(status.lp, Pace(now_s))
        self._lines[status.lp] = (
            label,
            *pace.report(status.time_ps, status.events, status.blocked_s),
        )
        table = Table.grid(padding=(0, 2))
        for lp in sorted(self._lines):
            table.add_row(*self._lines[lp])
        self._live.update(table, refresh=True)

    def ended(self) -> None:
        """The run has ended."""
        self._live.stop()


def progress(stream: TextIO, *, alone: bool = False) -> RunObserver:
    """Live progress on a terminal, plain progress elsewhere.

    An LP that runs `alone` inherits the terminal, so a live table would destroy its output.
    """
    return LiveProgress(stream) if stream.isatty() and not alone else PlainProgress(stream)
