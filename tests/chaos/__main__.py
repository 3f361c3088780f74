"""`python -m tests.chaos` disturbs runs in four ways, and prints what was not as it must be.

    signals   kills, stops and other signals at random moments, to random processes of random runs
    frames    frames of processes that are not of the run, at the sockets of its LPs
    limits    limits of the system, full disks, directories and streams that cannot be used
    damage    run directories in which a file is damaged, read by every command that reads one

Every core is kept busy meanwhile. A case depends on the seed and its number alone. The exit code is
1 if a case was not as expected; the command that repeats it is printed.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from tests.chaos.busy_cores import busy_cores
from tests.chaos.outcome import Outcome
from tests.chaos.page import table, write_table
from tests.chaos.series import NAMES, Series, all_series


@click.command()
@click.option("--seed", type=int, default=1, show_default=True, help="Selects the random cases.")
@click.option(
    "--series", "names", type=click.Choice(NAMES), multiple=True, help="Only these series."
)
@click.option("--count", type=click.IntRange(1), help="Cases of a series, by default all of them.")
@click.option("--only", type=click.IntRange(0), help="Only the case with this number.")
@click.option("--write", type=click.Path(path_type=Path), help="A page that gets the table.")
def main(
    seed: int, names: Sequence[str], count: int | None, only: int | None, write: Path | None
) -> None:
    """Disturb runs, and print what was not as it must be."""
    # Otherwise each process compiles all that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    outcomes = list[Outcome]()
    began_s = time.monotonic()
    with busy_cores(), TemporaryDirectory(prefix="kb-") as folder:
        every = all_series(seed, Path(folder))
        for name in names or NAMES:
            outcomes += _run(every[name], seed, [only] if only is not None else count)
    failed = sum(bool(each.problems) for each in outcomes)
    click.echo(f"\n{table(outcomes)}\n")
    left = sum(each.left_to_next_run for each in outcomes)
    click.echo(f"{left} private directories were left to the next run, since no process was left.")
    click.echo(f"{failed} of {len(outcomes)} cases failed; {time.monotonic() - began_s:.0f} s")
    if write is not None:
        write_table(write, outcomes)
    raise SystemExit(1 if failed else 0)


def _run(series: Series, seed: int, numbers: list[int] | int | None) -> list[Outcome]:
    """Run cases of one series, and print a line for each."""
    chosen = numbers if isinstance(numbers, list) else range(numbers or series.size)
    outcomes = list[Outcome]()
    for number, outcome in series.outcomes(chosen):
        outcomes.append(outcome)
        word = "FAILED" if outcome.problems else "skipped" if outcome.skipped else "ok"
        click.echo(f"{series.name} {number:>3} {word:<7} {outcome.case}")
        if outcome.problems:
            command = f"python -m tests.chaos --seed {seed} --series {series.name} --only {number}"
            click.echo("\n".join(["", *outcome.problems, outcome.output, f"again: {command}", ""]))
    return outcomes


if __name__ == "__main__":
    main()
