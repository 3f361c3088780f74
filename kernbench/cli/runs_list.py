"""`kernbench runs list`: the runs in a folder, the oldest first."""

from pathlib import Path

import click

from kernbench.cli.options import CONTEXT_SETTINGS
from kernbench.cli.runs import folder_argument
from kernbench.run_records.run_list import ListedRun, listed_runs
from runtime.core.output import print_lines
from runtime.core.wallclock import local_time

_HEADING = f"{'run':>4}  {'name':<28}  {'ended':<16}  {'sips':>4}  {'simulated ns':>16}  digest"
_KIB = 1 << 10


@click.command(name="list", context_settings=dict(CONTEXT_SETTINGS))
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
