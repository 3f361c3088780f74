"""`kernbench runs prune --keep N`: remove the oldest runs of a folder."""

from pathlib import Path

import click

from kernbench.cli.exit_codes import print_warning
from kernbench.cli.options import CONTEXT_SETTINGS, NATURAL
from kernbench.cli.runs import folder_argument
from kernbench.run_records.run_list import listed_runs, remove_run
from runtime.core.output import print_lines


@click.command(name="prune", context_settings=dict(CONTEXT_SETTINGS))
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
