"""`kernbench validate`: checks of the model against closed forms and reference data."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from kernbench.cli.options import CONTEXT_SETTINGS, number
from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.check import GROUPS
from kernbench.validate.mesh_checks import traffic_csv
from kernbench.validate.mesh_network import PATTERNS
from kernbench.validate.plan import Part, missed, parts, run
from kernbench.validate.report import print_tables, summary, write_csv
from runtime.core.config_file import default_file, read_text
from runtime.core.errors import UsageError
from runtime.core.output import clear_output
from runtime.core.wallclock import now_s
from runtime.model.topology import parse_topology

LOAD = number(float, "a number above 0 and at most 1", sys.float_info.min, 1.0)


@click.command(name="validate", context_settings=dict(CONTEXT_SETTINGS))
@click.option(
    "--only",
    default="",
    metavar="PREFIX",
    help="Only checks whose id starts with this: `a`, `c.sink`, `e.uniform.0.95`.",
)
@click.option(
    "--topology",
    type=click.Path(path_type=Path),
    help="Topology file, instead of that of kernbench.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Seed of all random numbers.",
)
@click.option("--full", is_flag=True, help="All loads of the mesh reference instead of five.")
@click.option(
    "--procs",
    type=click.IntRange(1),
    help="Processes, by default one for each core; 1: no other process.",
)
@click.option(
    "--csv", "csv_path", type=click.Path(path_type=Path), help="Write the checks to this file."
)
@click.option(
    "--fail-fast", is_flag=True, help="End behind the first part with a check out of tolerance."
)
@click.option("--list", "lists", is_flag=True, help="List the checks and end.")
@click.option(
    "--mesh",
    is_flag=True,
    help="Instead of checks, traffic on a 4x4 mesh: a line of CSV for each --load.",
)
@click.option(
    "--pattern",
    type=click.Choice(PATTERNS),
    default="uniform",
    show_default=True,
    help="Destinations, with --mesh.",
)
@click.option(
    "--load",
    "loads",
    type=LOAD,
    multiple=True,
    help="Flits per node and cycle, with --mesh; may be given several times.",
)
@click.option(
    "--flits",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Flits of a packet, with --mesh.",
)
def validate_command(  # noqa: PLR0913 - a parameter for each option
    only: str,
    topology: Path | None,
    seed: int,
    *,
    full: bool,
    procs: int | None,
    csv_path: Path | None,
    fail_fast: bool,
    lists: bool,
    mesh: bool,
    pattern: str,
    loads: Sequence[float],
    flits: int,
) -> int:
    """Check the model against closed forms and reference data.

    Each check has an expected and a measured value, their deviation, a tolerance and a verdict.
    Exit code 1 if one is out of its tolerance. docs/validation.md describes the groups.
    """
    chosen = [part for part in parts(seed, full=full) if part.may_match(only)]
    if lists:
        _list(chosen)
        return 0
    source = topology or default_file("topology.yaml")
    text = read_text(source)
    parse_topology(text, str(source))
    if mesh:
        return _mesh(text, pattern, loads, flits, seed)
    if loads:
        raise UsageError("validate: --load belongs to --mesh")
    count = min(procs or os.cpu_count() or 1, max(len(chosen), 1))
    return _validate(text, chosen, only, count, csv_path, fail_fast=fail_fast)


def _validate(
    text: str,
    chosen: Sequence[Part],
    only: str,
    procs: int,
    csv_path: Path | None,
    *,
    fail_fast: bool,
) -> int:
    if csv_path is not None:
        clear_output(csv_path, "validate: --csv")
    began_s = now_s()
    checks = run(text, chosen, only, procs, fail_fast=fail_fast)
    if not checks:
        raise UsageError(
            f"validate: --only {only}: no check has an id that starts with this; --list shows them"
        )
    print_tables(checks)
    print(f"{summary(checks)} ({now_s() - began_s:.1f} s)")
    if csv_path is not None:
        write_csv(csv_path, checks)
    return 1 if missed(checks) else 0


def _list(chosen: Sequence[Part]) -> None:
    for group, what in GROUPS.items():
        prefixes = sorted({part.prefix for part in chosen if part.prefix[0] == group})
        if prefixes:
            print(f"{group}  {what}: {' '.join(f'{prefix}*' for prefix in prefixes)}")


def _mesh(text: str, pattern: str, loads: Sequence[float], flits: int, seed: int) -> int:
    if not loads:
        raise UsageError("validate: --mesh needs at least one --load")
    for line in traffic_csv(TopologyFile.of(text), pattern, loads, flits, seed):
        print(line, flush=True)
    return 0
