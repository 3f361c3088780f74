"""Points spread over worker processes, which end with the process that uses them, however it ends."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from signal import SIG_DFL, SIGINT, signal
from typing import TypeVar

from runtime.core.errors import RunAborted
from sip_node.lifeline import follow

P = TypeVar("P")
R = TypeVar("R")
_PERIOD_S = 0.2


def completed(
    measure: Callable[[P], R], points: Sequence[P], procs: int, timeout_s: float
) -> Generator[tuple[P, R]]:
    """Each point with `measure(point)`, as they are done; they are begun in their order.

    With one process everything happens in this one. What `measure` raises is raised here and ends all; `RunAborted` if no
    point is done for `timeout_s` seconds, 0 for ever. `measure`, points and results travel between processes.
    """
    if procs == 1:
        for point in points:
            yield point, measure(point)
        return
    with _workers(min(procs, len(points))) as pool:
        running = {pool.submit(measure, point): point for point in points}
        while running:
            done, _ = wait(running, timeout_s or None, FIRST_COMPLETED)
            if not done:
                left = ", ".join(map(str, running.values()))
                raise RunAborted(f"no result for {timeout_s:g} s (--timeout); not done: {left}")
            for future in done:
                yield running.pop(future), future.result()


@contextmanager
def _workers(count: int) -> Generator[ProcessPoolExecutor]:
    """A pool that leaves no process behind: where it does not end in peace, its workers are stopped at once."""
    others = set(active_children())
    # Fresh interpreters: a fork would copy whatever threads the caller has into a broken state.
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin)
    try:
        yield pool
    except BaseException:
        for worker in set(active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    # Ctrl-C reaches every process of the terminal. One of them says so, and a traceback of each worker would not help.
    signal(SIGINT, SIG_DFL)
    follow(_orphaned)


def _orphaned() -> bool:
    parent = parent_process()
    assert parent is not None, "a worker is started by a process"
    parent.join(_PERIOD_S)
    return not parent.is_alive()
