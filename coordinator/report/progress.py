"""Shows the progress of a run: on a terminal one live line, elsewhere a line every 5 s.

The line has the simulated time of the LP that is furthest behind, the events of all LPs a second,
the share of wall time for which LPs wait for each other, and the kernel which has waited longest
for a peer, in simulated time.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from coordinator.launch.placement import Placement
from coordinator.watch.watch import RunObserver
from runtime.core.coordinates import PeCoordinates
from runtime.core.simtime import format_ps
from runtime.core.wallclock import now_s
from runtime.wire.control import Status
from runtime.wire.reports import BlockedPe

PLAIN_PERIOD_S = 5.0
_LIVE_PERIOD_S = 0.25
"""The period of the status of an LP: a line has about one of each."""
MOST_SHARES = 8
"""LPs of which a line has the blocked shares one by one; of more, the least and the largest."""
_Sips = tuple[int, ...]


class Pace:
    """The progress of a run since the previous line."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since_s = clock()
        self._events = 0
        self._blocked_s: dict[_Sips, float] = {}
        self._latest: dict[_Sips, Status] = {}

    @property
    def age_s(self) -> float:
        """Seconds since the previous line."""
        return self._clock() - self._since_s

    def add(self, status: Status, sips: _Sips) -> None:
        """An LP with these SIPs has reported."""
        self._latest[sips] = status

    def line(self) -> str:
        """The next line."""
        latest = dict(sorted(self._latest.items()))
        # Two lines can have the same time on a coarse clock.
        elapsed_s = max(self.age_s, 1e-9)
        events = sum(lp.events for lp in latest.values())
        blocked_s = {sips: lp.blocked_s for sips, lp in latest.items()}
        shares = {
            sips: min(1.0, (now - self._blocked_s.get(sips, 0.0)) / elapsed_s)
            for sips, now in blocked_s.items()
        }
        rate = (events - self._events) / elapsed_s
        self._since_s, self._events, self._blocked_s = self._clock(), events, blocked_s
        parts = [
            # The LP that is furthest behind determines how far the run is.
            format_ps(min(lp.time_ps for lp in latest.values())),
            f"{rate:,.0f} events/s",
            f"blocked {_shares(shares)}",
        ]
        waits = [(lp.oldest_wait, lp.time_ps) for lp in latest.values() if lp.oldest_wait]
        if waits:
            parts.append(_wait(*min(waits, key=lambda wait: wait[0].since_ps)))
        return "  ".join(parts)


def _shares(shares: dict[_Sips, float]) -> str:
    if len(shares) > MOST_SHARES:
        return f"{min(shares.values()):.0%} to {max(shares.values()):.0%}"
    if len(shares) == 1:
        return f"{next(iter(shares.values())):.0%}"
    return ", ".join(f"sip {_numbers(sips)} {share:.0%}" for sips, share in shares.items())


def _numbers(sips: _Sips) -> str:
    return str(sips[0]) if len(sips) == 1 else f"{sips[0]}-{sips[-1]}"


def _wait(wait: BlockedPe, time_ps: int) -> str:
    pe = PeCoordinates(wait.sip, wait.cube, wait.pe)
    # Behind the comma is the call of the program, for which one line has no room.
    source = wait.line.partition(",")[0]
    line = f" at {source}" if source else ""
    waited = format_ps(max(time_ps - wait.since_ps, 0))
    return f"oldest wait {waited}: {pe} {wait.operation} {wait.direction}{line}"


class PlainProgress:
    """Progress as one line every few seconds."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = now_s) -> None:
        self._stream = stream
        self._clock = clock
        self._pace = Pace(clock)

    def launched(self, pids: tuple[int, ...]) -> None:  # noqa: ARG002 - the interface of RunObserver
        """Every process has been started."""
        self._pace = Pace(self._clock)

    def placed(self, placement: Placement, sips_of_lp: tuple[_Sips, ...]) -> None:
        """Every process has joined."""

    def status(self, status: Status, sips: tuple[int, ...]) -> None:
        """An LP reported its simulated time and its number of events."""
        self._pace.add(status, sips)
        if self._pace.age_s >= PLAIN_PERIOD_S:
            # A run must not end because its progress cannot be shown, for example on a full disk.
            with suppress(OSError):
                print(self._pace.line(), file=self._stream, flush=True)

    def ended(self) -> None:
        """The run has ended."""


class LiveProgress:
    """A line that is rewritten in place and removed at the end; printed lines appear above it."""

    def __init__(self, stream: TextIO) -> None:
        # Imported here: rich takes a tenth of a second that runs without a terminal need not pay.
        from rich.console import Console
        from rich.live import Live

        # If the standard output is a file, printed lines must go there and not above this one.
        console, shared = Console(file=stream), sys.stdout.isatty()
        self._live = Live(
            console=console, transient=True, auto_refresh=False, redirect_stdout=shared
        )
        self._pace = Pace(now_s)
        self._has_line = False

    def launched(self, pids: tuple[int, ...]) -> None:
        """Every process has been started."""
        self._live.start()
        self._live.update(f"{len(pids)} processes are starting", refresh=True)

    def placed(self, placement: Placement, sips_of_lp: tuple[_Sips, ...]) -> None:
        """Every process has joined."""

    def status(self, status: Status, sips: tuple[int, ...]) -> None:
        """An LP reported its simulated time and its number of events."""
        from rich.text import Text

        self._pace.add(status, sips)
        if not self._has_line or self._pace.age_s >= _LIVE_PERIOD_S:
            self._has_line = True
            # One line of any terminal; rich would take brackets for styles.
            line = Text(self._pace.line(), no_wrap=True, overflow="ellipsis")
            self._live.update(line, refresh=True)

    def ended(self) -> None:
        """The run has ended."""
        self._live.stop()


def progress(stream: TextIO, *, alone: bool = False) -> RunObserver:
    """Live progress on a terminal, plain progress elsewhere.

    An LP that runs `alone` inherits the terminal, so a live line would destroy its output.
    """
    return LiveProgress(stream) if stream.isatty() and not alone else PlainProgress(stream)
