"""The cores that this process may use."""

import os


def usable_cores() -> int:
    """The number of cores that the scheduler gives this process; at least 1.

    A container or `taskset` may allow fewer than the machine has.
    """
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
