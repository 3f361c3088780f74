"""Memory that a cluster gives one task: its watchers do not see the process that takes it."""

import sys
from typing import Any


def memory_of_worker() -> int:
    """Bytes for the task of the calling thread; 0 without a limit, and outside of Dask.

    The limit of a worker of Dask is divided by its threads, which run a task each.
    """
    # A worker of Dask has imported it, and no other process should.
    distributed: Any = sys.modules.get("distributed")
    if distributed is None:
        return 0
    try:
        worker = distributed.get_worker()
    except ValueError:
        return 0
    limit: int | None = worker.memory_manager.memory_limit
    threads: int = worker.state.nthreads
    return (limit or 0) // threads
