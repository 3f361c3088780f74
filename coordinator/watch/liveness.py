"""Distinguishes a hung LP (no messages) from a stalled one (no progress).

An LP sends a `Status` several times a second while it executes events or waits. Therefore:

- An LP without messages computes outside of simulated time, or its process is stopped: it *hangs*.
- LPs that send `Status` with unchanged time and event count wait for promises: they are *stalled*.

Neither is a deadlock of the program. A deadlock is detected by the LPs themselves, because in it no
event is left anywhere.

An LP also sends nothing while it starts, while its program imports modules, and while it waits for
a compiler. That may take minutes on a busy machine, and the processor time decides:

- An LP that starts or imports is *slow*, not hung, if it uses processor time, or if another LP does
  that starts or imports as well: LPs wait for each other at the lock of a build.
- An LP whose child processes use processor time is slow, too.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from coordinator.watch.failure import LpProcess
from coordinator.watch.processor_time import ProcessorTime
from runtime.core.simtime import NEVER_PS, format_ps
from runtime.wire.control import FromLp, Status

_RECENT_S = 1.0
"""A running or waiting LP sends a `Status` several times within this time."""
_LEAST_USED_S = 0.05
_LEAST_SHARE = 0.01
"""A process that uses less of a core waits: the threads of an LP which only watch use 0.1 %."""


@dataclass
class _Use:
    """Processor time since a wall time."""

    since_s: float
    used_s: float

    def advances(self, used_s: float, now_s: float) -> bool:
        """Whether enough was used since then; if so, the next count begins."""
        least_s = max(_LEAST_USED_S, _LEAST_SHARE * (now_s - self.since_s))
        if used_s - self.used_s < least_s:
            return False
        self.since_s, self.used_s = now_s, used_s
        return True


@dataclass
class _Activity:
    """The wall times of an LP's last message and of its last progress, and its last status.

    `slow_s` is the last time at which it was found to be slow. `silent` is its processor time when
    that was first read after the last message.
    """

    message_s: float
    progress_s: float
    status: Status | None = None
    imports: bool = False
    slow_s: float = float("-inf")
    silent: ProcessorTime | None = None
    latest: ProcessorTime | None = None
    uses: dict[str, _Use] = field(default_factory=dict[str, _Use])

    def advances(self, name: str, used_s: float, now_s: float) -> bool:
        return self.uses.setdefault(name, _Use(now_s, used_s)).advances(used_s, now_s)

    def restart(self, now_s: float) -> None:
        self.message_s = self.progress_s = now_s
        self.silent = None


class Liveness:
    """The activity of `lps` LPs. Every method takes the wall time `now_s`."""

    def __init__(self, lps: int, now_s: float) -> None:
        self._activity = {lp: _Activity(now_s, now_s) for lp in range(lps)}

    def restart(self, now_s: float) -> None:
        """Start all time limits anew."""
        for activity in self._activity.values():
            activity.restart(now_s)

    def received(self, lp: int, message: FromLp, now_s: float) -> None:
        """Record a message of an LP. Only a status equal to the previous one shows no progress."""
        activity = self._activity[lp]
        activity.message_s, activity.silent, activity.imports = now_s, None, False
        if not isinstance(message, Status):
            activity.progress_s = now_s
            return
        last, activity.status = activity.status, message
        if last is None or (message.time_ps, message.events) != (last.time_ps, last.events):
            activity.progress_s = now_s

    def imports(self, lp: int, *, imports: bool) -> None:
        """Record whether the program of an LP imports a module."""
        self._activity[lp].imports = imports

    def silent(self, missing: Collection[int], now_s: float) -> list[int]:
        """The LPs in `missing` which have sent nothing for a moment."""
        return [lp for lp in missing if now_s - self._activity[lp].message_s > _RECENT_S]

    def used(self, times: Mapping[int, ProcessorTime], now_s: float, *, starting: bool) -> None:
        """Record the processor times of silent LPs; `starting` is whether the run begins."""
        loading, loads = list[_Activity](), False
        for lp, time in times.items():
            activity = self._activity[lp]
            activity.silent, activity.latest = activity.silent or time, time
            # A child process that works, such as a compiler, is progress of the program that has
            # started it.
            if activity.advances("descendants", time.descendants_s, now_s):
                activity.slow_s = now_s
            advances = activity.advances("all", time.all_s, now_s)
            if starting or activity.imports:
                loading.append(activity)
                loads |= advances
        # LPs wait for each other at the lock of a build, so one that advances stands for all that
        # load.
        if loads:
            for activity in loading:
                activity.slow_s = now_s

    def used_in_silence_s(self, lp: int) -> float | None:
        """The processor time of an LP since its last message; None if it was not read."""
        activity = self._activity[lp]
        if activity.silent is None or activity.latest is None:
            return None
        return activity.latest.all_s - activity.silent.all_s

    def hung(self, missing: Collection[int], limit_s: float, now_s: float) -> int | None:
        """The first of the LPs in `missing` without a message for longer than `limit_s`, which was
        not slow in that time.
        """
        for lp in missing:
            activity = self._activity[lp]
            if now_s - max(activity.message_s, activity.slow_s) > limit_s:
                return lp
        return None

    def stalled(self, missing: Collection[int], limit_s: float, now_s: float) -> bool:
        """Whether none of the LPs in `missing` made progress for longer than `limit_s`."""
        activities = [self._activity[lp] for lp in missing]
        idle_s = [now_s - max(each.progress_s, each.slow_s) for each in activities]
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
