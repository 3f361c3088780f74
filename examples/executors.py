"""Executors for `--on examples/executors.py:NAME`: processes of loky, and jobs of Slurm.

    pip install loky submitit
    kernbench --bench ccl-algorithms --on examples/executors.py:loky_pool

The function of a name returns an object of a subclass of `concurrent.futures.Executor`.
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    import submitit

P = ParamSpec("P")
T = TypeVar("T")


class SubmititExecutor(Executor):
    """The jobs of submitit as futures: a thread waits for each job, at most `at_once`."""

    def __init__(self, jobs: "submitit.Executor", at_once: int) -> None:
        self._jobs, self._waiting = jobs, ThreadPoolExecutor(at_once)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit a job, whose result the future has."""
        return self._waiting.submit(lambda: self._jobs.submit(fn, *args, **kwargs).result())

    def shutdown(
        self,
        wait: bool = True,  # noqa: FBT001, FBT002 - as `Executor` has it
        *,
        cancel_futures: bool = False,
    ) -> None:
        """Wait for the jobs, or leave them to the scheduler."""
        self._waiting.shutdown(wait, cancel_futures=cancel_futures)


def loky_pool() -> Executor:
    """Eight processes of this machine."""
    from loky import ProcessPoolExecutor

    return ProcessPoolExecutor(max_workers=8)


def slurm_jobs() -> Executor:
    """A job of Slurm for each point, at most 100 at a time."""
    import submitit

    jobs = submitit.AutoExecutor(folder="jobs/%j")  # on a folder that the nodes share
    jobs.update_parameters(timeout_min=60, cpus_per_task=2, mem_gb=4, slurm_partition="compute")
    return SubmititExecutor(jobs, at_once=100)
