"""`python -m tests.fidelity`: the checks of `validate` and those on machines of their own."""

from pathlib import Path

import click

from kernbench.cli.validate import DEFAULT_SEED, print_list, validated
from kernbench.points.driver import PointOptions
from kernbench.points.task import LOCAL
from runtime.core.config.config_file import default_file, read_text
from runtime.core.cores import usable_cores
from tests.fidelity.plan import TITLES, every_part


@click.command()
@click.option("--only", default="", metavar="PREFIX", help="Checks whose id starts with this.")
@click.option("--topology", type=click.Path(path_type=Path), help="Another topology file.")
@click.option("--seed", type=click.IntRange(0), default=DEFAULT_SEED, help="Of all random numbers.")
@click.option("--full", is_flag=True, help="All loads of the references of the mesh.")
@click.option("--procs", type=click.IntRange(1), help="Processes, one for each core by default.")
@click.option("--csv", "csv_path", type=click.Path(path_type=Path), help="Write the checks here.")
@click.option("--fail-fast", is_flag=True, help="End behind the first part with a miss.")
@click.option("--list", "lists", is_flag=True, help="List the checks and end.")
def main(
    only: str,
    topology: Path | None,
    seed: int,
    full: bool,
    procs: int | None,
    csv_path: Path | None,
    fail_fast: bool,
    lists: bool,
) -> None:
    """Run all checks, with the options of `kernbench validate` and `--full`."""
    chosen = [part for part in every_part(seed, full=full) if part.may_match(only)]
    if lists:
        print_list(chosen, TITLES)
        return
    text = read_text(topology or default_file("topology.yaml"))
    options = PointOptions(LOCAL, min(procs or usable_cores(), max(len(chosen), 1)))
    raise SystemExit(validated(text, chosen, only, options, csv_path, TITLES, fail_fast=fail_fast))


if __name__ == "__main__":
    main()
