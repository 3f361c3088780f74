"""`kernbench validate`: checks of the model against closed forms and reference data."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from kernbench.command.options import CONTEXT_SETTINGS, number
from kernbench.points.driver import PointOptions
from kernbench.points.task import LOCAL
from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.check import GROUPS, Check
from kernbench.validate.mesh_checks import traffic_csv
from kernbench.validate.mesh_network import FLOW_CONTROLS, PATTERNS, MeshRouter, Traffic
from kernbench.validate.plan import Part, missed, parts, run
from kernbench.validate.report import print_tables, summary, write_csv
from runtime.core.config.config_file import default_file, read_text
from runtime.core.cores import usable_cores
from runtime.core.errors import UsageError
from runtime.core.output import clear_output
from runtime.core.wallclock import now_s
from runtime.model.topology import parse_topology

DEFAULT_SEED = 1
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
    "seeds",
    type=click.IntRange(0),
    multiple=True,
    help="Seed of all random numbers, by default 1; with --mesh, may be given several times.",
)
@click.option("--full", is_flag=True, help="All loads of the mesh reference instead of five.")
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
@click.option(
    "--mesh",
    is_flag=True,
    help="Instead of checks, traffic on a 4x4 mesh: a line of CSV for each --load and --seed.",
)
@click.option(
    "--pattern",
    type=click.Choice(PATTERNS),
    help="Destinations, with --mesh; uniform by default.",
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
    help="Flits of a packet, with --mesh; 1 by default.",
)
@click.option(
    "--flow-control",
    type=click.Choice(FLOW_CONTROLS),
    help="With --mesh: FIFO links for packets (unlimited, the default) or for flits, without a "
    "limit of buffers; or routers with credits.",
)
@click.option(
    "--router-stages", type=click.IntRange(1, 4), help="With --flow-control credits: 4 by default."
)
@click.option(
    "--vcs", type=click.IntRange(1, 64), help="With --flow-control credits: 4 by default."
)
@click.option(
    "--buffer-flits",
    type=click.IntRange(1, 1 << 16),
    help="Flits of a VC's buffer, with --flow-control credits: 8 by default.",
)
def validate_command(  # noqa: PLR0913 - a parameter for each option
    only: str,
    topology: Path | None,
    seeds: Sequence[int],
    *,
    full: bool,
    procs: int | None,
    on: str | None,
    csv_path: Path | None,
    fail_fast: bool,
    lists: bool,
    mesh: bool,
    **traffic: Any,
) -> int:
    """Check the model against closed forms and reference data.

    Each check has an expected and a measured value, their deviation, a tolerance and a verdict.
    Exit code 1 if one is out of its tolerance. docs/internals/validation.md describes the groups.
    """
    if mesh:
        _check_no_checks(
            {"only": only, "full": full, "csv": csv_path, "fail-fast": fail_fast, "list": lists}
            | {"procs": procs, "on": on}
        )
    else:
        _check_no_traffic(traffic, seeds)
    chosen = [
        part
        for part in parts(seeds[0] if seeds else DEFAULT_SEED, full=full)
        if part.may_match(only)
    ]
    if lists:
        _list(chosen)
        return 0
    source = topology or default_file("topology.yaml")
    text = read_text(source)
    parse_topology(text, str(source))
    if mesh:
        return _mesh(TopologyFile.of(text), seeds or (DEFAULT_SEED,), **traffic)
    options = PointOptions(on or LOCAL, min(procs or usable_cores(), max(len(chosen), 1)))
    return _validate(text, chosen, only, options, csv_path, fail_fast=fail_fast)


def _check_no_checks(options: dict[str, Any]) -> None:
    for option, value in options.items():
        if value not in (None, False, ""):
            raise UsageError(f"validate: --{option} belongs to the checks, not to --mesh")


def _check_no_traffic(traffic: dict[str, Any], seeds: Sequence[int]) -> None:
    for name, value in traffic.items():
        if value not in (None, ()):
            option = name.removesuffix("s") if name == "loads" else name.replace("_", "-")
            raise UsageError(f"validate: --{option} belongs to --mesh")
    if len(seeds) > 1:
        raise UsageError("validate: several --seed belong to --mesh")


def _validate(
    text: str,
    chosen: Sequence[Part],
    only: str,
    options: PointOptions,
    csv_path: Path | None,
    *,
    fail_fast: bool,
) -> int:
    if csv_path is not None:
        clear_output(csv_path, "validate: --csv")
    began_s = now_s()
    checks: list[Check] = []
    print_tables(_stored(run(text, chosen, only, options, fail_fast=fail_fast), checks))
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


def _list(chosen: Sequence[Part]) -> None:
    for group, what in GROUPS.items():
        prefixes = sorted({part.prefix for part in chosen if part.prefix[0] == group})
        if prefixes:
            print(f"{group}  {what}: {' '.join(f'{prefix}*' for prefix in prefixes)}")


def _mesh(
    file: TopologyFile,
    seeds: Sequence[int],
    *,
    pattern: str | None,
    loads: Sequence[float],
    flits: int | None,
    flow_control: str | None,
    **router: int | None,
) -> int:
    if not loads:
        raise UsageError("validate: --mesh needs at least one --load")
    flow_control = flow_control or "unlimited"
    given = {name: value for name, value in router.items() if value is not None}
    if given and flow_control != "credits":
        option = next(iter(given)).replace("_", "-")
        raise UsageError(f"validate: --{option} belongs to --flow-control credits")
    chosen = MeshRouter(
        flow_control,
        given.get("router_stages", MeshRouter.stages),
        given.get("vcs", MeshRouter.vcs),
        given.get("buffer_flits", MeshRouter.buffer_flits),
    )
    traffics = (
        Traffic(pattern or PATTERNS[0], load, flits or 1, seed) for load in loads for seed in seeds
    )
    for line in traffic_csv(file, chosen, traffics):
        print(line, flush=True)
    return 0
