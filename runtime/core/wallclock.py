"""The only access to the wall clock: for timeouts, progress and speed, never for results."""

import time  # noqa: TID251 - the only module that may import it


def now_s() -> float:
    """Seconds on a monotonic clock with an arbitrary origin."""
    return time.monotonic()


def cpu_s() -> float:
    """CPU seconds used by this process."""
    return time.process_time()


def sleep_s(seconds: float) -> None:
    """Block the calling thread."""
    time.sleep(seconds)
