"""The wall clock. Everything that measures or waits in real time goes through here; simulated results never do."""

import time  # noqa: TID251 - the one module that may


def now_s() -> float:
    """Seconds on a monotonic clock with an arbitrary origin."""
    return time.monotonic()


def cpu_s() -> float:
    """CPU seconds used by this process."""
    return time.process_time()


def sleep_s(seconds: float) -> None:
    """Block the calling thread."""
    time.sleep(seconds)
