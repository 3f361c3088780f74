"""Distinguishes a hung LP (no messages) from a stalled one (no progress).

An LP sends a `Status` several times a second while it executes events or waits. Therefore:

- An LP without messages computes outside of simulated time, or its process is stopped: it *hangs*.
- LPs that send `Status` with unchanged time and event count wait for promises: they are *stalled*.

Neither is a deadlock of the program. A deadlock is detected by the LPs themselves, because in it no
event is left anywhere.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from coordinator.failure import LpProcess
from runtime.core.simtime import NEVER_PS, format_ps
from runtime.wire.control import FromLp, Status

_RECENT_S = 1.0
"""A running or waiting LP sends a `Status` several times within this time."""


@dataclass
class _Activity:
    """The wall times of an LP's last message and of its last progress, and its last status."""

    message_s: float
    progress_s: float
    status: Status | None = None


class Liveness:
    """The activity of `lps` LPs. Every method takes the wall time `now_s`."""

    def __init__(self, lps: int, now_s: float) -> None:
        self._activity = {lp: _Activity(now_s, now_s) for lp in range(lps)}

    def restart(self, now_s: float) -> None:
        """Start all time limits anew."""
        for activity in self._activity.values():
            activity.message_s = activity.progress_s = now_s

    def received(self, lp: int, message: FromLp, now_s: float) -> None:
        """Record a message of an LP. Only a status equal to the previous one shows no progress."""
        activity = self._activity[lp]
        activity.message_s = now_s
        if not isinstance(message, Status):
            activity.progress_s = now_s
            return
        last, activity.status = activity.status, message
        if last is None or (message.time_ps, message.events) != (last.time_ps, last.events):
            activity.progress_s = now_s

    def hung(self, missing: Collection[int], limit_s: float, now_s: float) -> int | None:
        """The first of the LPs in `missing` without a message for longer than `limit_s`."""
        return next((lp for lp in missing if now_s - self._activity[lp].message_s > limit_s), None)

    def stalled(self, missing: Collection[int], limit_s: float, now_s: float) -> bool:
        """Whether none of the LPs in `missing` made progress for longer than `limit_s`."""
        idle_s = [now_s - self._activity[lp].progress_s for lp in missing]
        # One LP that advances is enough: the others may wait for it legitimately.
        return bool(idle_s) and min(idle_s) > limit_s

    def states(self, processes: Collection[LpProcess], now_s: float) -> Iterator[str]:
        """A line for each LP: what it executes, or which LP it waits for, and how long."""
        for process in processes:
            activity = self._activity[process.lp]
            silence_s = now_s - activity.message_s
            if silence_s > _RECENT_S:
                yield f"{process} has been silent for {silence_s:.1f} s"
            elif activity.status is not None:
                yield f"{process} {_state(activity.status, now_s - activity.progress_s)}"


def _state(status: Status, idle_s: float) -> str:
    # An event below the safe time can be executed: the LP is not blocked.
    if status.waits_for < 0 or status.next_ps < status.safe_ps:
        return f"executes events at {format_ps(status.time_ps)}"
    event = (
        "it has no event"
        if status.next_ps >= NEVER_PS
        else f"its next event is at {format_ps(status.next_ps)}"
    )
    return (
        f"has stood at {format_ps(status.time_ps)} for {idle_s:.1f} s: {event}, and it waits for "
        f"LP {status.waits_for}, which may still send from {format_ps(status.safe_ps)} on"
    )
