"""Measures the speed of the simulator side by side, and writes one table of medians.

    python -m kernbench.measure.host_speed.bench [--against COMMIT] [--write FILE]

A round runs every column of a row once, in turn, so that a machine whose speed drifts favours none;
each ratio is taken within a round, and the table has medians over the rounds. A column is a number
of processes or a commit, which is checked out and installed in a temporary folder.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from statistics import median

from kernbench.measure.host_speed.bench_page import (
    BenchSection,
    machine_lines,
    write_between_markers,
)
from kernbench.measure.host_speed.measured_run import MeasuredRun, measure
from kernbench.measure.host_speed.phold_simulus import NOT_INSTALLED, is_installed

ROOT = Path(__file__).parents[3]
PRODUCT = ("--bench", "gemm-single-pe", "--m", "512", "--k", "512", "--n", "512")


@dataclass(frozen=True)
class BenchRun:
    """The run that a row measures: a command and its arguments, on a number of SIPs."""

    sips: int
    arguments: tuple[str, ...]
    command: tuple[str, ...] = ()


RUNS: Mapping[str, BenchRun] = {
    "default bench, 2 SIPs": BenchRun(2, ()),
    "all-reduce of 2 MiB, 2 SIPs": BenchRun(2, ("all_reduce", "-b", "2M"), ("perf",)),
    "product of 512³ on a PE": BenchRun(1, PRODUCT),
    "product of 512³ on a PE of each of 2 SIPs": BenchRun(2, PRODUCT),
    "qkv-gemm-multi-pe": BenchRun(1, ("--bench", "qkv-gemm-multi-pe")),
    "qkv-gemm-multi-pe on each of 2 SIPs": BenchRun(2, ("--bench", "qkv-gemm-multi-pe")),
}
"""The rows of runs."""
QUICK = ("default bench, 2 SIPs",)
_PHOLD = ("phold", "--event-us", "10", "--window-events")
_SIMULUS = ("phold_simulus", "--end-ns", "4000", "--lps")
RATIOS: Mapping[str, tuple[str, ...]] = {
    "PHOLD: 2 processes ÷ ceiling, 0.1 ms of work a window": (*_PHOLD, "10"),
    "PHOLD: 2 processes ÷ ceiling, 1 ms of work a window": (*_PHOLD, "100"),
    "PHOLD: pdes ÷ simulus, 1 process, no work": (*_SIMULUS, "1"),
    "PHOLD: pdes ÷ simulus, 2 processes, no work": (*_SIMULUS, "2"),
    "hops: compiled ÷ Python": ("hops", "--cores"),
}
"""The rows of ratios: programs of this package that end with a median."""
_Time = Callable[[MeasuredRun], float]
_TIMES: tuple[_Time, ...] = tuple(map(attrgetter, ("wall_s", "run_s", "cpu_s")))


@dataclass(frozen=True)
class BenchColumn:
    """A way to run: the interpreter, the folder of the sources, the number of processes."""

    title: str
    python: Path
    root: Path
    procs: int

    def measure(self, run: BenchRun) -> MeasuredRun:
        """One run."""
        command = [str(self.python), str(self.root / "launch.py"), *run.command]
        sizes = ["--sips", str(run.sips), "--procs", str(self.procs)]
        return measure([*command, *sizes, *run.arguments])


@contextmanager
def checkout(commit: str) -> Generator[BenchColumn]:
    """The column of a commit: its sources and its own environment, in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tree"
        _git("worktree", "add", "--quiet", "--detach", str(root), commit)
        try:
            subprocess.run(["make", "setup"], cwd=root, check=True, stdout=subprocess.DEVNULL)  # noqa: S607
            title = f"{commit}, 1 process"
            yield BenchColumn(title, root / ".venv" / "bin" / "python", root, procs=1)
        finally:
            _git("worktree", "remove", "--force", str(root))


def compare(run: BenchRun, columns: Sequence[BenchColumn], rounds: int) -> list[list[MeasuredRun]]:
    """The runs of every column, by round. Raises `SystemExit` if digests of one tree differ."""
    measured = [[column.measure(run) for column in columns] for _ in range(rounds)]
    for index, column in enumerate(columns):
        digests = {runs[index].digest for runs in measured}
        same = [k for k, other in enumerate(columns) if other.root == column.root]
        digests |= {runs[k].digest for runs in measured for k in same}
        if len(digests) > 1:
            raise SystemExit(f"digests of {column.title} differ: {sorted(digests)}")
    return measured


def run_rows(
    names: Sequence[str], columns: Sequence[BenchColumn], rounds: int
) -> Iterator[tuple[str, ...]]:
    """The cells of each run: what a column took, then how many times faster than the first it is.

    The last cell is the same ratio of the run's wall time to the first column of the same tree. A
    column with more processes than the run has SIPs is left out.
    """
    for name in names:
        used = [column for column in columns if column.procs <= RUNS[name].sips]
        measured = compare(RUNS[name], used, rounds)
        for index, column in enumerate(used):
            runs = [each[index] for each in measured]
            alone = next(k for k, other in enumerate(used) if other.root == column.root)
            yield (
                name,
                column.title,
                *(f"{median(time(run) for run in runs):.2f}" for time in _TIMES),
                f"{median(run.peak_mib for run in runs):.0f}",
                *(_ratio(measured, 0, index, time) for time in _TIMES),
                _ratio(measured, alone, index, attrgetter("run_s")),
            )


def _ratio(measured: list[list[MeasuredRun]], base: int, index: int, time: _Time) -> str:
    """Median over the rounds of the time of column `base` divided by that of column `index`."""
    return f"{median(time(each[base]) / time(each[index]) for each in measured):.2f}"


def ratio_rows(names: Sequence[str], rounds: int) -> Iterator[tuple[str, ...]]:
    """The medians that the programs of this package print last.

    A row of simulus has a note in place of a number where the package is not installed.
    """
    for name in names:
        module, *arguments = RATIOS[name]
        if module == "phold_simulus" and not is_installed():
            yield name, f"not measured: {NOT_INSTALLED}"
            continue
        command = [
            sys.executable,
            "-m",
            f"kernbench.measure.host_speed.{module}",
            "--rounds",
            str(rounds),
        ]
        done = subprocess.run(  # noqa: S603 - our own command
            [*command, *arguments], check=True, capture_output=True, text=True, cwd=ROOT
        )
        yield name, done.stdout.split()[-1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the page section, and write it with `--write`."""
    parser = argparse.ArgumentParser(
        prog="python -m kernbench.measure.host_speed.bench", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--against", metavar="COMMIT", help="a commit to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="the default bench only, no PHOLD")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page with the markers")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: at least 1")
    own = [
        BenchColumn(f"{procs} process{'es' * (procs > 1)}", Path(sys.executable), ROOT, procs)
        for procs in (1, 2)
    ]
    names = QUICK if options.quick else tuple(RUNS)
    if options.against is None:
        rows = tuple(run_rows(names, own, options.rounds))
    else:
        with checkout(options.against) as base:
            rows = tuple(run_rows(names, [base, *own], options.rounds))
    section = BenchSection(
        machine_lines(ROOT, options.rounds),
        rows,
        () if options.quick else tuple(ratio_rows(tuple(RATIOS), options.rounds)),
    )
    print(section.text())
    if options.write is not None:
        write_between_markers(options.write, section.text())
    return 0


def _git(*arguments: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *arguments], check=True)  # noqa: S603, S607


if __name__ == "__main__":
    sys.exit(main())
