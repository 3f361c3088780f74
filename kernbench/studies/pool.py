"""Measures points in worker processes, which end with the process that uses them in every case.

The workers are spawned, not forked. Each one follows its parent (`sip_node.lifeline`) and exits
when the parent is gone, even after SIGKILL; an exception in one point stops all others.
"""

import gc
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from multiprocessing import active_children, get_context, parent_process
from signal import SIG_DFL, SIGINT, signal
from typing import TypeVar

from runtime.core.errors import RunAborted
from sip_node.lifeline import follow

P = TypeVar("P")
R = TypeVar("R")
_PERIOD_S = 0.2
"""Seconds between two checks of a worker that its parent is alive."""


def completed(
    measure: Callable[[P], R], points: Sequence[P], procs: int, timeout_s: float
) -> Generator[tuple[P, R]]:
    """Each point with `measure(point)`, in the order of completion; points start in their order.

    One process measures in the calling process. `measure`, points and results must be picklable.
    An exception of `measure` is raised here and stops all workers. Raises `RunAborted` if no point
    completes for `timeout_s` seconds; 0 waits without limit.
    """
    if procs == 1:
        for point in points:
            yield point, _measured(measure, point)
        return
    with _workers(min(procs, len(points))) as pool:
        running = {pool.submit(partial(_measured, measure), point): point for point in points}
        while running:
            finished, _ = wait(running, timeout_s or None, FIRST_COMPLETED)
            if not finished:
                left = ", ".join(map(str, running.values()))
                raise RunAborted(f"no result for {timeout_s:g} s (--timeout); not done: {left}")
            for future in finished:
                yield running.pop(future), future.result()


def _measured(measure: Callable[[P], R], point: P) -> R:
    """`measure(point)`; what it leaves in memory is deleted.

    The parts of a simulated machine refer to each other, so only the collector finds them. No
    collection during a run deletes anything (`runtime.core.garbage_collection`), and nearly all of
    the time of a worker is in runs: without this one, 30 MB and more stay for each point.
    """
    result = measure(point)
    gc.collect()
    return result


@contextmanager
def _workers(count: int) -> Generator[ProcessPoolExecutor]:
    """A pool whose workers are terminated at once if the block raises or is abandoned."""
    others = set(active_children())
    # Spawned, because a fork would copy locks held by the caller's threads, and could deadlock.
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin)
    try:
        yield pool
    # GeneratorExit and KeyboardInterrupt too: `shutdown` alone would wait for running points.
    except BaseException:
        for worker in set(active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    # Ctrl-C reaches every process of the terminal. The parent reports it; without the default
    # handler each worker would print a traceback of its own.
    signal(SIGINT, SIG_DFL)
    follow(_orphaned)


def _orphaned() -> bool:
    parent = parent_process()
    assert parent is not None, "a worker is started by a process"
    parent.join(_PERIOD_S)
    return not parent.is_alive()
