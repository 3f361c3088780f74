"""Shows which points are complete, and how long the others may take: a bar or, in a log, lines."""

import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from kernbench.points.task import Point
from runtime.core.wallclock import now_s

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class PointProgress(Protocol):
    """Shows what happens to the points."""

    def completed(self, point: Point, outcome: str) -> None:
        """A point is complete, with `outcome` in a few words."""
        ...

    def note(self, text: str) -> None:
        """Something else to be shown, in whole lines."""
        ...


class Estimate:
    """The rest of the wall time, from the costs of the points and the time since the start.

    The points that are complete have taken as long for their cost as the others will.
    """

    def __init__(self, points: Iterable[Point]) -> None:
        self._left = sum(point.cost for point in points)
        self._done = 0
        self._began_s = now_s()

    def completed(self, point: Point) -> None:
        """A point is complete."""
        self._done += point.cost
        self._left -= point.cost

    @property
    def text(self) -> str:
        """`about 3 min left`; empty if nothing is."""
        if self._left <= 0 or self._done <= 0:
            return ""
        return f"about {duration((now_s() - self._began_s) * self._left / self._done)} left"


def duration(seconds: float) -> str:
    """A time in the largest unit of which it has at least two: `50 s`, `3 min`, `5 h`."""
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


@contextmanager
def point_progress(
    points: Iterable[Point], known: int, noun: str, stream: TextIO | None = None
) -> Generator[PointProgress]:
    """Shows the progress of `points`; as many as `known` were complete before.

    `noun` names the points in the plural. `stream` is the standard error unless it is given.
    """
    shown = stream or sys.stderr
    measured = list(points)
    if not shown.isatty():
        yield _Lines(Estimate(measured), known, known + len(measured), shown)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    # What goes to the same terminal is printed above the bar. Transient: the bar is erased at the
    # end, so that the table stands alone.
    console, to_terminal = Console(file=shown), sys.stdout.isatty()
    with Progress(*columns, console=console, transient=True, redirect_stdout=to_terminal) as bar:
        total = known + len(measured)
        task = bar.add_task(f"{len(measured)} {noun} are starting", total=total, completed=known)
        yield _Bar(Estimate(measured), bar, task)


class _Lines:
    def __init__(self, estimate: Estimate, known: int, count: int, stream: TextIO) -> None:
        self._estimate = estimate
        self._complete, self._count = known, count
        self._stream = stream

    def completed(self, point: Point, outcome: str) -> None:
        self._complete += 1
        self._estimate.completed(point)
        rest = self._estimate.text
        self.note(f"{self._complete}/{self._count}  {point}  {outcome}{rest and f'  {rest}'}")

    def note(self, text: str) -> None:
        # Flushed, so that a log file shows each point when it completes.
        print(text, file=self._stream, flush=True)


class _Bar:
    def __init__(self, estimate: Estimate, bar: "Progress", task: "TaskID") -> None:
        self._estimate = estimate
        self._bar, self._task = bar, task

    def completed(self, point: Point, outcome: str) -> None:
        self._estimate.completed(point)
        rest = self._estimate.text
        text = f"{rest and f'{rest}  '}{point}  {outcome}"
        self._bar.update(self._task, advance=1, description=text)

    def note(self, text: str) -> None:
        # Above the bar. A bracket in it is no markup.
        self._bar.console.print(text, markup=False, highlight=False)
