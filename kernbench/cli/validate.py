"""`kernbench validate`: checks of the model against closed forms, on a topology file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from kernbench.command.options import CONTEXT_SETTINGS
from kernbench.oracle.checks.check import GROUPS, Check
from kernbench.oracle.checks.plan import Part, missed, parts, run
from kernbench.oracle.checks.report import print_tables, summary, write_csv
from kernbench.points.driver import PointOptions
from kernbench.points.task import LOCAL
from runtime.core.config.config_file import default_file, read_text
from runtime.core.cores import usable_cores
from runtime.core.errors import UsageError
from runtime.core.output import clear_output
from runtime.core.wallclock import now_s
from runtime.model.jitter import NOT_MEASURED, jitter_bounds, nominal_text
from runtime.model.topology import parse_topology

DEFAULT_SEED = 1


@click.command(name="validate", context_settings=dict(CONTEXT_SETTINGS))
@click.option(
    "--only",
    default="",
    metavar="PREFIX",
    help="Only checks whose id starts with this: `a`, `c.sink`, `i.ring.time.2`.",
)
@click.option(
    "--topology",
    type=click.Path(path_type=Path),
    help="Topology file, instead of that of kernbench.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=DEFAULT_SEED,
    show_default=True,
    help="Seed of all random numbers.",
)
@click.option(
    "--procs",
    type=click.IntRange(1),
    help="Processes, by default one for each core; 1: no other process.",
)
@click.option(
    "--on",
    metavar="ENGINE",
    help="Where the checks are made: local (the default), dask:ADDRESS, ray:ADDRESS, or "
    "module:factory of any concurrent.futures.Executor.",
)
@click.option(
    "--csv", "csv_path", type=click.Path(path_type=Path), help="Write the checks to this file."
)
@click.option(
    "--fail-fast", is_flag=True, help="End behind the first part with a check out of tolerance."
)
@click.option("--list", "lists", is_flag=True, help="List the checks and end.")
def validate_command(
    only: str,
    topology: Path | None,
    seed: int,
    *,
    procs: int | None,
    on: str | None,
    csv_path: Path | None,
    fail_fast: bool,
    lists: bool,
) -> int:
    """Check the model against closed forms.

    Each check has an expected and a measured value, their deviation, a tolerance and a verdict.
    Exit code 1 if one is out of its tolerance. docs/internals/validation.md describes the groups.
    """
    chosen = [part for part in parts(seed) if part.may_match(only)]
    if lists:
        print_list(chosen)
        return 0
    source = topology or default_file("topology.yaml")
    text = read_text(source)
    machine = parse_topology(text, str(source))
    if bounds := jitter_bounds(machine):
        print(f"# {NOT_MEASURED.format(bounds)}\n")
    text = nominal_text(machine, text)
    options = PointOptions(on or LOCAL, min(procs or usable_cores(), max(len(chosen), 1)))
    return validated(text, chosen, only, options, csv_path, fail_fast=fail_fast)


def validated(
    text: str,
    chosen: Sequence[Part],
    only: str,
    options: PointOptions,
    csv_path: Path | None,
    titles: Mapping[str, str] = GROUPS,
    *,
    fail_fast: bool,
) -> int:
    """Print the checks of the chosen parts on the topology file `text`; the exit code.

    Raises `UsageError` if no check has an id that starts with `only`.
    """
    if csv_path is not None:
        clear_output(csv_path, "validate: --csv")
    began_s = now_s()
    checks: list[Check] = []
    print_tables(_stored(run(text, chosen, only, options, fail_fast=fail_fast), checks), titles)
    if not checks:
        raise UsageError(
            f"validate: --only {only}: no check has an id that starts with this; --list shows them"
        )
    print(f"{summary(checks)} ({now_s() - began_s:.1f} s)")
    if csv_path is not None:
        write_csv(csv_path, checks)
    return 1 if missed(checks) else 0


def _stored(checks: Iterable[Check], into: list[Check]) -> Iterator[Check]:
    for check in checks:
        into.append(check)
        yield check


def print_list(chosen: Sequence[Part], titles: Mapping[str, str] = GROUPS) -> None:
    """Print a line for each group: its title, and what the ids of its parts start with."""
    for group, what in titles.items():
        prefixes = sorted({part.prefix for part in chosen if part.prefix[0] == group})
        if prefixes:
            print(f"{group}  {what}: {' '.join(f'{prefix}*' for prefix in prefixes)}")
