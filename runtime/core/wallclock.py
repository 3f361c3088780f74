"""The only access to the wall clock: for timeouts, progress and speed, never for results."""

from time import monotonic, process_time, sleep  # noqa: TID251 - the only module that may do it


def now_s() -> float:
    """Seconds on a monotonic clock with an arbitrary origin."""
    return monotonic()


def cpu_s() -> float:
    """CPU seconds used by this process."""
    return process_time()


def sleep_s(seconds: float) -> None:
    """Block the calling thread."""
    sleep(seconds)
