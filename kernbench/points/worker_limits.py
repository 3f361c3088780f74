"""What a cluster says of the task that the calling thread executes: its memory, and its end.

The watchers of a cluster see its own workers and not the point processes behind them.
"""

import sys
from collections.abc import Callable
from typing import Any


def memory_of_worker() -> int:
    """Bytes for the task of the calling thread; 0 without a limit, and outside of Dask.

    The limit of a worker of Dask is divided by its threads, which run a task each.
    """
    worker = _worker_of_dask()
    if worker is None:
        return 0
    limit: int | None = worker.memory_manager.memory_limit
    threads: int = worker.state.nthreads
    return (limit or 0) // threads


def cancellation() -> Callable[[], bool]:
    """Tells whether the task of the calling thread has been cancelled; from any thread.

    Dask lets the thread of a cancelled task go on. Ray kills its process.
    """
    worker = _worker_of_dask()
    if worker is None:
        return lambda: False
    key, tasks = worker.get_current_task(), worker.state.tasks

    def is_cancelled() -> bool:
        task = tasks.get(key)
        return task is None or task.state == "cancelled"

    return is_cancelled


def _worker_of_dask() -> Any:
    """The worker of Dask whose task this thread executes, or None."""
    # A worker of Dask has imported it, and no other process should.
    distributed: Any = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_worker()
    except ValueError:
        return None
