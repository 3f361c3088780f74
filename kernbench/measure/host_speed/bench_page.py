"""The section of `docs/internals/speed.md` that `kernbench.measure.host_speed.bench` writes."""

import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from coordinator.report.aggregate import versions
from runtime.core.cores import usable_cores
from runtime.core.errors import UsageError

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
_HEADINGS = (
    *("run", "how", "command s", "run s", "CPU s", "MiB"),
    *("command ratio", "run ratio", "CPU ratio", "run over 1 process"),
)


@dataclass(frozen=True)
class BenchSection:
    """Results of a measurement: a description of the machine, the rows of runs, those of ratios.

    The ratios of a run are the time of its first row divided by its own.
    """

    machine: str
    runs: Sequence[Sequence[str]]
    ratios: Sequence[Sequence[str]]

    def text(self) -> str:
        """The section as Markdown."""
        lines = [self.machine, "", *_table(_HEADINGS, self.runs)]
        if self.ratios:
            lines += ["", *_table(("comparison", "median ratio"), self.ratios)]
        return "\n".join(lines)


def machine_lines(root: Path, rounds: int) -> str:
    """Machine, versions, commit and date in a sentence; lines of at most 100 characters."""
    commit = subprocess.run(  # noqa: S603 - our own command
        ["git", "-C", str(root), "describe", "--always", "--dirty"],  # noqa: S607
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    packages = ", ".join(f"{name} {number}" for name, number in versions().items())
    return (
        f"Commit {commit}, {date.today().isoformat()}, medians of {rounds} rounds.\n"  # noqa: DTZ011
        f"{usable_cores()} cores ({platform.machine()}, {platform.system()}),\n{packages}."
    )


def write_between_markers(page: Path, text: str) -> None:
    """Replace what is between the markers of `page`; raises `UsageError` if it has none."""
    content = page.read_text("utf-8")
    before, begin, rest = content.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise UsageError(f"--write {page}: the page has no lines {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", "utf-8")


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [headings, ["---"] * len(headings), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]
