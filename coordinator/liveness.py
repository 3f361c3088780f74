"""Who gets on and who does not, from what the LPs say of themselves and when they said it.

An LP that is silent computes outside of simulated time. LPs that all speak and stand still wait for promises. Neither is a
deadlock of the program: of that the LPs themselves know, since no event is left.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from coordinator.failure import LpProcess
from runtime.core.simtime import NEVER_PS, format_ps
from runtime.wire.messages import FromLp, Status

_RECENT_S = 1.0
"""An LP that gets on or waits speaks several times a second."""


@dataclass
class _Signs:
    """When an LP was last heard, since when it stands still, and the last status it gave."""

    heard_s: float
    moved_s: float
    status: Status | None = None


class Liveness:
    """The signs of life of `lps` LPs. Every method is told the wall time `now_s`."""

    def __init__(self, lps: int, now_s: float) -> None:
        self._signs = {lp: _Signs(now_s, now_s) for lp in range(lps)}

    def renew(self, now_s: float) -> None:
        """Count from now on: nobody owed anything before."""
        for signs in self._signs.values():
            signs.heard_s = signs.moved_s = now_s

    def heard(self, lp: int, message: FromLp, now_s: float) -> None:
        """An LP has spoken. Whatever it says but a status like the last one shows that it gets on."""
        signs = self._signs[lp]
        signs.heard_s = now_s
        if not isinstance(message, Status):
            signs.moved_s = now_s
            return
        if signs.status is None or (message.time_ps, message.events) != (
            signs.status.time_ps,
            signs.status.events,
        ):
            signs.moved_s = now_s
        signs.status = message

    def silent(self, missing: Collection[int], limit_s: float, now_s: float) -> int | None:
        """The first of the LPs in `missing` that has not been heard for longer than `limit_s`."""
        return next((lp for lp in missing if now_s - self._signs[lp].heard_s > limit_s), None)

    def stalled(self, missing: Collection[int], limit_s: float, now_s: float) -> bool:
        """Whether none of the LPs in `missing` has got on for longer than `limit_s`."""
        return bool(missing) and all(now_s - self._signs[lp].moved_s > limit_s for lp in missing)

    def account(self, places: Collection[LpProcess], now_s: float) -> Iterator[str]:
        """A line for each LP in `places`: what it does, or whom it waits for, and since when."""
        for place in places:
            signs = self._signs[place.lp]
            if now_s - signs.heard_s > _RECENT_S:
                yield f"{place} has been silent for {now_s - signs.heard_s:.1f} s"
            elif signs.status is not None:
                yield f"{place} {_doing(signs.status, now_s - signs.moved_s)}"


def _doing(status: Status, stands_s: float) -> str:
    if status.waits_for < 0 or status.next_ps < status.safe_ps:
        return f"executes events at {format_ps(status.time_ps)}"
    event = (
        "it has no event"
        if status.next_ps >= NEVER_PS
        else f"its next event is at {format_ps(status.next_ps)}"
    )
    return (
        f"has stood at {format_ps(status.time_ps)} for {stands_s:.1f} s: {event}, and it waits for LP {status.waits_for}, "
        f"which may still send from {format_ps(status.safe_ps)} on"
    )
