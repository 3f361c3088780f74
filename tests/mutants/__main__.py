"""`python -m tests.mutants [NAME ...]` runs all checks on each mutant and prints the score.

Where a mutant names a test of records, that test runs in place of the expected checks.

A NAME selects the mutants whose name or file contains it. The exit code is 1 if less than 95 % of
the mutants are noticed.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import click

from tests.mutants import ALL, PARTS
from tests.mutants.mutant import Mutant
from tests.mutants.runner import ROOT, Outcome, check_tests, outcome_of, unmutated_s

TARGET = 0.95


@click.command()
@click.argument("names", nargs=-1)
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="At a time.")
@click.option("--list", "lists", is_flag=True, help="List the mutants and end.")
@click.option(
    "--expected-only", is_flag=True, help="Only the checks expected to notice, not all others."
)
@click.option(
    "--whole-s",
    type=float,
    help="Take this as the time of all checks without a mutant, instead of running them first.",
)
def main(
    names: tuple[str, ...], jobs: int, *, lists: bool, expected_only: bool, whole_s: float | None
) -> None:
    """Run all checks on each mutant, or on those whose name or file contains a NAME."""
    chosen = [each for each in ALL if not names or _is_named(each, names)]
    if not chosen:
        raise click.UsageError(f"no mutant has a name or file with {' or '.join(names)}")
    if lists:
        for mutant in chosen:
            click.echo(f"{mutant.name}  {mutant.file}  {mutant.expected}\n    {mutant.breaks}")
        return
    for mutant in chosen:
        # Before many runs: an edit that does not fit the code is an error of the mutant.
        mutant.edited(ROOT)
    check_tests(chosen)
    limit_s = unmutated_s() if whole_s is None else whole_s
    click.echo(f"all checks without a mutant: {limit_s:.0f} s")
    run = partial(outcome_of, whole_s=limit_s, expected_only=expected_only)
    with ThreadPoolExecutor(jobs) as pool:
        outcomes: list[tuple[Mutant, Outcome]] = []
        for mutant, outcome in zip(chosen, pool.map(run, chosen), strict=True):
            outcomes.append((mutant, outcome))
            click.echo(_line(mutant, outcome))
    raise SystemExit(_report(outcomes))


def _is_named(mutant: Mutant, names: tuple[str, ...]) -> bool:
    return any(name in mutant.name or name in mutant.file for name in names)


def _line(mutant: Mutant, outcome: Outcome) -> str:
    detail = outcome.last_line
    if outcome.word == "noticed":
        others = len(outcome.ids) - 1
        detail = outcome.ids[0] + (f" and {others} more" if others else "")
        if not outcome.ids[0].startswith(mutant.noticed_by):
            detail += f" (expected: {mutant.expected})"
    return f"{outcome.word:<9} {mutant.name:<40} {detail}"


def _report(outcomes: list[tuple[Mutant, Outcome]]) -> int:
    """Print the survivors, the score by part and the whole score; the exit code."""
    survivors = {mutant.name for mutant, outcome in outcomes if not outcome.is_notice}
    for mutant, _ in outcomes:
        if mutant.name in survivors:
            reason = mutant.survives or "no reason is given"
            click.echo(f"\nsurvivor {mutant.name} ({mutant.file}): {mutant.breaks}\n  {reason}")
    click.echo(f"\n{'part':<40} mutants  noticed")
    ran = {mutant.name for mutant, _ in outcomes}
    for part, mutants in PARTS.items():
        names = {mutant.name for mutant in mutants} & ran
        if names:
            click.echo(f"{part:<40} {len(names):>7}  {len(names - survivors):>7}")
    score = 1 - len(survivors) / len(outcomes)
    click.echo(f"\n{len(ran - survivors)} of {len(ran)} mutants noticed: {score:.1%}")
    return 0 if score >= TARGET else 1


if __name__ == "__main__":
    main()
