"""Shows the progress of a study while its points complete: a bar on a terminal, else lines."""

from collections.abc import Callable, Iterator
from typing import TextIO, TypeVar

P = TypeVar("P")
R = TypeVar("R")


def shown(
    pairs: Iterator[tuple[P, R]], count: int, stream: TextIO, noun: str, outcome: Callable[[R], str]
) -> Iterator[tuple[P, R]]:
    """The same pairs of point and result; each is shown with `outcome(result)` when it arrives.

    `count` is the number of pairs to come, `noun` their name in the plural.
    """
    return (
        _as_bar(pairs, count, stream, noun, outcome)
        if stream.isatty()
        else _as_lines(pairs, count, stream, outcome)
    )


def _as_lines(
    pairs: Iterator[tuple[P, R]], count: int, stream: TextIO, outcome: Callable[[R], str]
) -> Iterator[tuple[P, R]]:
    for number, (point, result) in enumerate(pairs, start=1):
        # Flushed, so that a log file shows each point when it completes.
        print(f"{number}/{count}  {point}  {outcome(result)}", file=stream, flush=True)
        yield point, result


def _as_bar(
    pairs: Iterator[tuple[P, R]], count: int, stream: TextIO, noun: str, outcome: Callable[[R], str]
) -> Iterator[tuple[P, R]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    # Transient: the bar is erased at the end, so that the table stands alone.
    with Progress(*columns, console=Console(file=stream), transient=True) as bar:
        task = bar.add_task(f"{count} {noun} are starting", total=count)
        for point, result in pairs:
            bar.update(task, advance=1, description=f"{point}  {outcome(result)}")
            yield point, result
