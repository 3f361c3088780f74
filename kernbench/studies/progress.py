"""The progress of a study, while its points are done one after the other."""

from collections.abc import Callable, Iterator
from typing import TextIO, TypeVar

P = TypeVar("P")
R = TypeVar("R")


def shown(
    done: Iterator[tuple[P, R]], count: int, stream: TextIO, noun: str, outcome: Callable[[R], str]
) -> Iterator[tuple[P, R]]:
    """The same points; a bar on a terminal, a line for each elsewhere: the point and `outcome` of its result."""
    return (
        _as_bar(done, count, stream, noun, outcome)
        if stream.isatty()
        else _as_lines(done, count, stream, outcome)
    )


def _as_lines(
    done: Iterator[tuple[P, R]], count: int, stream: TextIO, outcome: Callable[[R], str]
) -> Iterator[tuple[P, R]]:
    for number, (point, result) in enumerate(done, start=1):
        print(f"{number}/{count}  {point}  {outcome(result)}", file=stream, flush=True)
        yield point, result


def _as_bar(
    done: Iterator[tuple[P, R]], count: int, stream: TextIO, noun: str, outcome: Callable[[R], str]
) -> Iterator[tuple[P, R]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(file=stream), transient=True) as bar:
        task = bar.add_task(f"{count} {noun} are starting", total=count)
        for point, result in done:
            bar.update(task, advance=1, description=f"{point}  {outcome(result)}")
            yield point, result
