"""The only access to the wall clock: for timeouts, progress and speed, never for results."""

import os
import time  # noqa: TID251 - the only module that may do it
from contextlib import suppress
from pathlib import Path
from time import monotonic, monotonic_ns, process_time, sleep  # noqa: TID251 - as above

_START_FIELD = 19
"""Index of `starttime`, the 22nd field of proc(5), among those after the name."""


def now_s() -> float:
    """Seconds on a monotonic clock with an arbitrary origin."""
    return monotonic()


def now_ns() -> int:
    """Nanoseconds on the same clock, which all processes of a host share (CLOCK_MONOTONIC)."""
    return monotonic_ns()


def cpu_s() -> float:
    """CPU seconds used by this process."""
    return process_time()


def process_age_s() -> float:
    """Seconds since this process was started, to a hundredth.

    On systems without Linux's `/proc` it is the CPU time of the process, which is less.
    """
    try:
        # The fields follow the name of the program in brackets, which may contain spaces.
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        started_s = int(fields[_START_FIELD]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started_s)
    except (OSError, AttributeError, ValueError):
        return process_time()


def sleep_s(seconds: float) -> None:
    """Block the calling thread."""
    sleep(seconds)


def wake_precisely() -> None:
    """Let waits of the main thread end within microseconds; Linux delays them by 50 µs to save
    energy.
    """
    with suppress(OSError):
        Path("/proc/self/timerslack_ns").write_text("1")


def local_time(since_epoch_s: float) -> str:
    """A time of the file system, as `2026-11-24 09:30` in the zone of the user."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(since_epoch_s))
