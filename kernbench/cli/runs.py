"""`kernbench runs`: lists the run directories of a folder, or removes the oldest."""

from pathlib import Path
from typing import Any

import click

from kernbench.command.exit_codes import print_warning
from kernbench.command.options import CONTEXT_SETTINGS, NATURAL
from kernbench.explain.records.run_list import ListedRun, listed_runs, remove_run
from runtime.core.output import print_lines
from runtime.core.wallclock import local_time

DEFAULT_FOLDER = Path("runs")
_HEADING = f"{'run':>4}  {'name':<28}  {'ended':<16}  {'sips':>4}  {'simulated ns':>16}  digest"
_KIB = 1 << 10

runs_command = click.Group(
    name="runs",
    context_settings=dict(CONTEXT_SETTINGS),
    help="List the run directories in a folder, or remove the oldest.",
)


def folder_argument(function: Any) -> Any:
    """The argument FOLDER of a subcommand."""
    return click.argument(
        "folder", required=False, type=click.Path(path_type=Path), default=DEFAULT_FOLDER
    )(function)


@runs_command.command(name="list", context_settings=dict(CONTEXT_SETTINGS))
@folder_argument
def runs_list_command(folder: Path) -> int:
    """List the runs in FOLDER, by default runs, the oldest first."""
    runs = listed_runs(folder)
    if not runs:
        print_lines([f"no runs in {folder}"])
        return 0
    print_lines([f"{_HEADING:<100}  {'KiB':>10}", *map(_line, runs)])
    return 1 if any(each.run is None for each in runs) else 0


def _line(each: ListedRun) -> str:
    number = "" if each.number is None else str(each.number)
    name = each.directory.name if each.number is None else each.directory.name.partition("-")[2]
    begin = f"{number:>4}  {_shown(name):<28}  {local_time(each.ended_s)}"
    run = each.run
    if run is None:
        return f"{begin}  {_shown(each.problem)}"
    state = run.digest[:16] if run.passed else "failed"
    times = f"{run.sips:>4}  {run.total_ps / 1000:>16,.3f}"
    return f"{f'{begin}  {times}  {_shown(state)}':<100}  {each.nbytes / _KIB:>10,.1f}"


def _shown(text: str) -> str:
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


@runs_command.command(name="prune", context_settings=dict(CONTEXT_SETTINGS))
@folder_argument
@click.option("--keep", type=NATURAL, required=True, metavar="N", help="The newest runs stay.")
def runs_prune_command(folder: Path, keep: int) -> int:
    """Remove the oldest runs in FOLDER, by default runs, so that N stay.

    A directory which is not that of a run stays, and one to which a run is writing.
    """
    runs = listed_runs(folder)
    nbytes = 0
    removed = list[str]()
    for each in runs[: max(0, len(runs) - keep)]:
        if problem := remove_run(each):
            print_warning(f"{problem}; it stays")
        else:
            removed.append(f"removed {each.directory}")
            nbytes += each.nbytes
    stay = len(runs) - len(removed)
    print_lines([*removed, f"{len(removed)} runs removed, {nbytes:,} B; {stay} stay"])
    return 0
