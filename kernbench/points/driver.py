"""Measures points on an executor: longest first, each row kept as it comes, the dead replaced.

A point that raises an exception or exceeds a limit would do so again: it becomes a fault at once. A
point whose worker has died is tried again, since the reason may be the worker; the third death
makes it a fault. All other points are measured in both cases.
"""

import pickle  # noqa: TID251 - for the workers of the user
import sys
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import closing
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from kernbench.points.child import collect, details, reason
from kernbench.points.cluster_future import LostWorkerError
from kernbench.points.code import code_of_this_process
from kernbench.points.executors import open_executor
from kernbench.points.progress import PointProgress, point_progress
from kernbench.points.rows_file import RowsFile
from kernbench.points.task import ATTEMPTS, LOCAL, Limits, Point, PointFault, PointResult, PointTask
from kernbench.points.worker import end_point_processes, run_task
from runtime.core.cores import usable_cores
from runtime.core.errors import RunAborted, UsageError

P = TypeVar("P", bound=Point)
R = TypeVar("R")
_PERIOD_S = 0.1


@dataclass(frozen=True)
class PointOptions:
    """Executor and limits of the measurement of points.

    `on` names the executor and `procs` the local processes, by default one for each core.
    `timeout_s` limits the time without any result, 0 not. `resume` keeps the rows of an earlier
    start; None does so if that has not come to its end.
    """

    on: str = LOCAL
    procs: int | None = None
    timeout_s: float = 0.0
    resume: bool | None = None
    limits: Limits = field(default_factory=Limits)

    @property
    def in_this_process(self) -> bool:
        """Whether this process measures the points itself, as a debugger needs it."""
        return self.on == LOCAL and self.procs == 1 and self.limits == Limits()


IN_THIS_PROCESS = PointOptions(procs=1)


@dataclass(frozen=True)
class PointMeasurement(Generic[P, R]):
    """The measurement of a point: `measure(point)` is a `row_type`, in words `outcome(row)`.

    `noun` names the points in the plural. `measure` travels to the workers: it must be picklable.
    """

    measure: Callable[[P], R]
    row_type: type[R]
    noun: str
    outcome: Callable[[R], str]


def measured_points(
    measurement: PointMeasurement[P, R],
    points: Sequence[P],
    options: PointOptions,
    rows_file: RowsFile[P, R] | None = None,
) -> dict[P, R | PointFault]:
    """The row of each point, or why it has none, with progress on the standard error.

    Raises `RunAborted` if no point completes for `options.timeout_s`, and `UsageError` for an
    executor that cannot be opened and for workers with other code. Rows of `rows_file` are not
    measured again.
    """
    rows: dict[P, R | PointFault] = dict(rows_file.rows) if rows_file else {}
    known = len(rows)
    left = [point for point in dict.fromkeys(points) if point not in rows]
    if rows_file and rows_file.note:
        _note(rows_file.note)
    try:
        with (
            point_progress(left, known, measurement.noun) as progress,
            closing(completed_points(measurement, left, options, progress)) as results,
        ):
            for point, result in results:
                rows[point] = result
                if rows_file:
                    rows_file.add(point, result)
                progress.completed(point, _outcome(measurement, result))
    except BaseException:
        if rows_file and len(rows) > known:
            _note(
                f"{len(rows)} of {len(points)} {measurement.noun} are in {rows_file.path}: the "
                "same command goes on from there"
            )
        raise
    if rows_file:
        rows_file.finish()
    return {point: rows[point] for point in points}


def _outcome(measurement: PointMeasurement[P, R], result: R | PointFault) -> str:
    if isinstance(result, PointFault):
        return f"FAULT: {result.reason}"
    return measurement.outcome(result)


def _note(text: str) -> None:
    print(f"kernbench: note: {text}", file=sys.stderr)


def completed_points(
    measurement: PointMeasurement[P, R],
    points: Sequence[P],
    options: PointOptions,
    progress: PointProgress,
) -> Generator[tuple[P, R | PointFault]]:
    """Each point with its result, in the order of completion; see `measured_points`."""
    # Longest first: a long point started last would run alone while the other workers are idle.
    ordered = sorted(points, key=lambda point: point.cost, reverse=True)
    if options.in_this_process:
        return _in_this_process(measurement, ordered, progress)
    return _Run(measurement, options, progress).results(ordered)


def _in_this_process(
    measurement: PointMeasurement[P, R], points: Iterable[P], progress: PointProgress
) -> Generator[tuple[P, R | PointFault]]:
    for point in points:
        try:
            result = measurement.measure(point)
        except Exception as error:  # noqa: BLE001 - of the user's function
            if detail := details(error):
                progress.note(detail)
            result = PointFault(str(point), reason(error))
        yield point, result
        collect()


class _Run(Generic[P, R]):
    """The points of one measurement on executors: a broken one is opened again."""

    def __init__(
        self, measurement: PointMeasurement[P, R], options: PointOptions, progress: PointProgress
    ) -> None:
        self._measurement = measurement
        self._options = options
        self._progress = progress
        self._code = code_of_this_process()
        self._deaths = Counter[P]()
        self._shown = set[str]()

    def results(self, points: Sequence[P]) -> Generator[tuple[P, R | PointFault]]:
        """Each point with its result, in the order of completion."""
        left = dict.fromkeys(points)
        breaks = 0
        while left:
            procs = min(self._options.procs or usable_cores(), len(left))
            try:
                with open_executor(self._options.on, procs) as executor:
                    for point, result in self._on(executor, list(left)):
                        del left[point]
                        breaks = 0
                        yield point, result
            except (BrokenExecutor, CancelledError) as error:
                breaks += 1
                if breaks == ATTEMPTS:
                    raise RunAborted(
                        f"--on {self._options.on}: the executor has ended {ATTEMPTS} times without "
                        f"a result ({reason(error)}); not done: {_names(left)}"
                    ) from error

    def _on(self, executor: Executor, points: Sequence[P]) -> Generator[tuple[P, R | PointFault]]:
        running = dict[Future[PointResult], P]()
        try:
            for point in points:
                running[self._submitted(executor, point)] = point
            while running:
                timeout_s = self._options.timeout_s
                finished, _ = wait(running, timeout_s or None, FIRST_COMPLETED)
                _require_result(finished, timeout_s, running.values())
                for future in finished:
                    point = running.pop(future)
                    result = self._result(point, future)
                    if result is None:
                        running[self._submitted(executor, point)] = point
                    else:
                        yield point, result
        except BaseException:
            self._abandon(running)
            raise
        end_point_processes()

    def _abandon(self, running: Iterable[Future[PointResult]]) -> None:
        """Cancel the tasks that wait, and end those that run on this machine."""
        started = [future for future in running if not future.cancel()]
        end_point_processes()
        # Leaving the executor waits for its threads: one may have been about to start a process.
        while self._options.on == LOCAL and wait(started, _PERIOD_S).not_done:
            end_point_processes()

    def _submitted(self, executor: Executor, point: P) -> Future[PointResult]:
        payload = pickle.dumps((self._measurement.measure, point))
        return executor.submit(run_task, PointTask(payload, self._options.limits, self._code))

    def _result(self, point: P, future: Future[PointResult]) -> R | PointFault | None:
        """The row or the fault of the point; None if it has to be tried again."""
        try:
            result = future.result()
        except (BrokenExecutor, CancelledError):
            raise
        except LostWorkerError as error:
            # The engine itself may have tried it several times.
            self._deaths[point] += error.tries - 1
            result = PointResult("lost", text=str(error))
        except Exception as error:  # noqa: BLE001 - each executor has its own
            # The executor reports in its own words that a worker has died.
            result = PointResult("lost", text=reason(error))
        self._print(point, result)
        match result.kind:
            case "row":
                return msgspec.msgpack.decode(result.content, type=self._measurement.row_type)
            case "fault":
                return PointFault(str(point), result.text)
            case "refused":
                raise UsageError(f"--on {self._options.on}: worker {result.host}: {result.text}")
            case "lost":
                self._deaths[point] += 1
                deaths = self._deaths[point]
                if deaths < ATTEMPTS:
                    self._progress.note(f"{point}: its worker has died ({result.text}); once more")
                    return None
                return PointFault(str(point), f"its worker has died {deaths} times ({result.text})")

    def _print(self, point: P, result: PointResult) -> None:
        """Show the output of the point, and a traceback that has not been shown before."""
        lines = result.output.splitlines()
        if result.detail and result.detail not in self._shown:
            self._shown.add(result.detail)
            lines += result.detail.splitlines()
        for line in lines:
            self._progress.note(f"{point}: {line}")


def _require_result(
    finished: Collection[object], timeout_s: float, points: Iterable[Point]
) -> None:
    if not finished:
        raise RunAborted(f"no result for {timeout_s:g} s (--timeout); not done: {_names(points)}")


def _names(points: Iterable[Point]) -> str:
    return ", ".join(map(str, points))
