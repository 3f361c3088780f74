"""How far a run is, while it runs: a live line per LP on a terminal, a plain line now and then otherwise."""

import sys
from typing import TextIO

from coordinator.watch import Observer
from runtime.simtime import format_ps
from runtime.wallclock import now_s
from runtime.wire.messages import Status

PLAIN_PERIOD_S = 5.0


class Pace:
    """Events a second and blocked share of one LP, between its last two reports."""

    def __init__(self, sips: tuple[int, ...]) -> None:
        self._name = f"sip {sips[0]}" if len(sips) == 1 else f"sips {sips[0]}-{sips[-1]}"
        self._since_s = now_s()
        self._events = 0
        self._blocked_s = 0.0

    def line(self, status: Status) -> tuple[str, str, str, str]:
        """Who, simulated time, events a second, blocked share."""
        now = now_s()
        elapsed_s = max(now - self._since_s, 1e-9)
        rate = (status.events - self._events) / elapsed_s
        blocked = min(1.0, (status.blocked_s - self._blocked_s) / elapsed_s)
        self._since_s, self._events, self._blocked_s = now, status.events, status.blocked_s
        return self._name, format_ps(status.time_ps), f"{rate:,.0f} events/s", f"blocked {blocked:.0%}"


class PlainProgress:
    """One line per LP every few seconds: a short run prints none."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._paces: dict[int, Pace] = {}
        self._printed_s: dict[int, float] = {}
        self._launched_s = now_s()

    def launched(self, pids: tuple[int, ...]) -> None:
        """Every process has been started."""
        self._launched_s = now_s()
        self._paces.clear()
        self._printed_s = dict.fromkeys(range(len(pids)), self._launched_s)

    def status(self, status: Status, sips: tuple[int, ...]) -> None:
        """An LP says how far it is."""
        pace = self._paces.setdefault(status.lp, Pace(sips))
        if now_s() - self._printed_s[status.lp] >= PLAIN_PERIOD_S:
            self._printed_s[status.lp] = now_s()
            print("  ".join(pace.line(status)), file=self._stream, flush=True)

    def ended(self) -> None:
        """Nothing more will come."""


class LiveProgress:
    """A table that is rewritten in place and gone when the run ends."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(file=stream), transient=True, auto_refresh=False)
        self._paces: dict[int, Pace] = {}
        self._lines: dict[int, tuple[str, str, str, str]] = {}

    def launched(self, pids: tuple[int, ...]) -> None:
        """Every process has been started."""
        self._live.start()
        self._live.update(f"{len(pids)} processes are starting", refresh=True)

    def status(self, status: Status, sips: tuple[int, ...]) -> None:
        """An LP says how far it is."""
        from rich.table import Table

        self._lines[status.lp] = self._paces.setdefault(status.lp, Pace(sips)).line(status)
        table = Table.grid(padding=(0, 2))
        for lp in sorted(self._lines):
            table.add_row(*self._lines[lp])
        self._live.update(table, refresh=True)

    def ended(self) -> None:
        """Nothing more will come."""
        self._live.stop()


def progress(stream: TextIO = sys.stderr) -> Observer:
    """Live on a terminal, plain elsewhere."""
    return LiveProgress(stream) if stream.isatty() else PlainProgress(stream)
