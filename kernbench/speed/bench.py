"""Measures the speed of the simulator side by side, and writes one table of medians.

    python -m kernbench.speed.bench [--against COMMIT] [--write FILE]

A round runs every column of a row once, in turn, so that a machine whose speed drifts favours none;
each ratio is taken within a round, and the table has medians over the rounds. A column is a number
of processes or a commit, which is checked out and installed in a temporary folder.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from kernbench.speed.bench_page import BenchSection, machine_lines, write_between_markers
from kernbench.speed.measured_run import MeasuredRun, measure

ROOT = Path(__file__).parents[2]
ALL_REDUCE = ("--bench", "ccl-allreduce", "--warmup", "0", "--min-bytes", "524288")
PRODUCT = ("--bench", "gemm-single-pe", "--m", "256", "--k", "256", "--n", "256")
RUNS: Mapping[str, tuple[str, ...]] = {
    "default bench": (),
    "all-reduce of 512 KiB": (*ALL_REDUCE, "--max-bytes", "524288"),
    "product of 256³ on a PE": PRODUCT,
    "qkv-gemm-multi-pe": ("--bench", "qkv-gemm-multi-pe"),
}
"""The rows: runs on two SIPs."""
QUICK = ("default bench",)
_MODULES: Mapping[str, tuple[str, ...]] = {
    "PHOLD, 0.1 ms of work a window": ("phold", "--event-us", "10", "--window-events", "10"),
    "PHOLD, 1 ms of work a window": ("phold", "--event-us", "10", "--window-events", "100"),
    "hops: compiled ÷ Python": ("hops", "--cores"),
}
"""The programs whose last line is a median ratio."""


@dataclass(frozen=True)
class BenchColumn:
    """A way to run: the interpreter, the folder of the sources, the number of processes."""

    title: str
    python: Path
    root: Path
    procs: int

    def measure(self, arguments: Sequence[str]) -> MeasuredRun:
        """One run of these arguments."""
        command = [str(self.python), str(self.root / "launch.py"), "--sips", "2"]
        return measure([*command, "--procs", str(self.procs), *arguments])


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


def compare(
    arguments: Sequence[str], columns: Sequence[BenchColumn], rounds: int
) -> list[list[MeasuredRun]]:
    """The runs of every column, by round. Raises `SystemExit` if digests of one tree differ."""
    found = [[column.measure(arguments) for column in columns] for _ in range(rounds)]
    for at, column in enumerate(columns):
        digests = {runs[at].digest for runs in found}
        same = [k for k, other in enumerate(columns) if other.root == column.root]
        digests |= {runs[k].digest for runs in found for k in same}
        if len(digests) > 1:
            raise SystemExit(f"digests of {column.title} differ: {sorted(digests)}")
    return found


def run_rows(
    names: Sequence[str], columns: Sequence[BenchColumn], rounds: int
) -> Iterator[tuple[str, ...]]:
    """The cells of each run: per column wall, CPU and memory, then the ratios to the first one."""
    for name in names:
        found = compare(RUNS[name], columns, rounds)
        for at, column in enumerate(columns):
            runs = [each[at] for each in found]
            wall = median(each[0].wall_s / each[at].wall_s for each in found)
            cpu = median(each[0].cpu_s / each[at].cpu_s for each in found)
            yield (
                name,
                column.title,
                f"{median(run.wall_s for run in runs):.2f}",
                f"{median(run.cpu_s for run in runs):.2f}",
                f"{median(run.peak_mib for run in runs):.0f}",
                f"{wall:.2f}",
                f"{cpu:.2f}",
            )


def ratio_rows(rounds: int) -> Iterator[tuple[str, ...]]:
    """The medians that the programs of this package print last."""
    for name, (module, *arguments) in _MODULES.items():
        command = [sys.executable, "-m", f"kernbench.speed.{module}", "--rounds", str(rounds)]
        done = subprocess.run(  # noqa: S603 - our own command
            [*command, *arguments], check=True, capture_output=True, text=True, cwd=ROOT
        )
        yield name, done.stdout.split()[-1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the page section, and write it with `--write`."""
    parser = argparse.ArgumentParser(
        prog="python -m kernbench.speed.bench", description=__doc__, allow_abbrev=False
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
        () if options.quick else tuple(ratio_rows(options.rounds)),
    )
    print(section.text())
    if options.write is not None:
        write_between_markers(options.write, section.text())
    return 0


def _git(*arguments: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *arguments], check=True)  # noqa: S603, S607


if __name__ == "__main__":
    sys.exit(main())
