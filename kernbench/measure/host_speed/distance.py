"""Measures how the wall time of a run grows with the distance between its LPs, beside a model.

    python -m kernbench.measure.host_speed.distance [--rounds N] [--write docs/internals/scaling.md]

Every LP of a run is as on a host of its own (`--delay-us`): what it sends arrives a time λ
later. The model is

    T(λ) = max(C + K · λ, W / cores)

with three numbers that the run itself reports. C is the processor time of the busiest LP, K the
number of trips between hosts on the critical path, one after the other, W the processor time of all
LPs. These are the span and the work of a parallel program (Brent's bounds): the second term matters
where cores are fewer than LPs, which then compute while others wait. Nothing is fitted.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgspec

from kernbench.measure.host_speed.bench_page import machine_lines, write_between_markers
from runtime.core.cores import usable_cores
from runtime.core.output import print_lines

ROOT = Path(__file__).parents[3]
DELAYS_US = (0.0, 50.0, 500.0, 5000.0)
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "all-reduce of 64 KiB": ("--min-bytes", "65536", "--max-bytes", "65536", "--warmup", "0"),
    "product of 512³ on a PE": (
        *("--bench", "gemm-single-pe", "--m", "512", "--k", "512", "--n", "512"),
    ),
    "layer, tensor parallel": ("--bench", "tp-attention-block"),
}
SIPS = (2, 8)


class _CountedTrips(msgspec.Struct):
    trips: int


class _Lp(msgspec.Struct):
    busy_s: float


class _Report(msgspec.Struct):
    wall_s: float
    digest: str
    lps: list[_Lp]
    between_hosts: _CountedTrips


@dataclass(frozen=True)
class DistantRun:
    """A run at one delay: its wall time, and what it has counted."""

    delay_us: float
    wall_s: float
    trips: int
    busy_s: tuple[float, ...]
    digest: str

    @property
    def compute_s(self) -> float:
        """C: the processor time of the busiest LP."""
        return max(self.busy_s)

    @property
    def shared_s(self) -> float:
        """W / cores: the processor time of all LPs, shared by the cores."""
        return sum(self.busy_s) / usable_cores()

    @property
    def model_s(self) -> float:
        """T(λ)."""
        return max(self.compute_s + self.trips * self.delay_us / 1e6, self.shared_s)


def run_at(program: Sequence[str], sips: int, delay_us: float) -> DistantRun:
    """One run of `program`. Raises `CalledProcessError` if it fails."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [sys.executable, str(ROOT / "launch.py"), "--sips", str(sips), "--no-trace"]
        distance = ["--delay-us", str(delay_us), "--out", str(out)]
        subprocess.run(  # noqa: S603 - our own command
            [*command, *distance, *program], check=True, stdout=subprocess.DEVNULL
        )
        report = msgspec.json.decode((out / "run.json").read_bytes(), type=_Report)
    return DistantRun(
        delay_us=delay_us,
        wall_s=report.wall_s,
        trips=report.between_hosts.trips,
        busy_s=tuple(lp.busy_s for lp in report.lps),
        digest=report.digest,
    )


def rows(rounds: int) -> Iterator[str]:
    """The lines of the table, as each program has been measured. `AssertionError` for digests."""
    yield "| run | SIPs | λ | K | C | W / cores | T measured | T model | deviation |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for name, program in PROGRAMS.items():
        for sips in SIPS:
            digests = set[str]()
            for delay_us in DELAYS_US:
                runs = [run_at(program, sips, delay_us) for _ in range(rounds)]
                digests |= {run.digest for run in runs}
                yield _row(name, sips, runs)
            assert len(digests) == 1, f"{name} on {sips} SIPs has more than one digest"


def _row(name: str, sips: int, runs: Sequence[DistantRun]) -> str:
    deviation = median(run.model_s / run.wall_s - 1 for run in runs)
    seconds = (
        median(run.compute_s for run in runs),
        median(run.shared_s for run in runs),
        median(run.wall_s for run in runs),
        median(run.model_s for run in runs),
    )
    cells = (
        name,
        str(sips),
        f"{runs[0].delay_us / 1000:g} ms",
        f"{median(run.trips for run in runs):.0f}",
        *(f"{value:.3f} s" for value in seconds),
        f"{deviation:+.0%}",
    )
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, measure, print and write."""
    parser = argparse.ArgumentParser(description="Wall time by the distance of LPs")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each cell")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page with the markers")
    options = parser.parse_args(arguments)
    lines = [machine_lines(ROOT, options.rounds), ""]
    for line in rows(options.rounds):
        print_lines([line])
        lines.append(line)
    if options.write is not None:
        write_between_markers(options.write, "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
