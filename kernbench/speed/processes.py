"""Compares the speed of one run with different numbers of processes.

Runs alternate (1, 2, 4, 1, 2, 4 ...), so that a machine whose speed drifts favours none. In each
round, every run is compared with that of one process; the result is the median of these ratios.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

LAUNCH = Path(__file__).parents[2] / "launch.py"


def measure(sips: int, procs: int, arguments: list[str]) -> dict[str, float | str]:
    """The `run.json` of one run; its wall time does not include the start of the processes."""
    with tempfile.TemporaryDirectory() as out:
        command = [
            sys.executable,
            str(LAUNCH),
            "--sips",
            str(sips),
            "--procs",
            str(procs),
            "--out",
            out,
            *arguments,
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
        return json.loads((Path(out) / "run.json").read_text())


def main() -> int:
    """Print a table; exit 1 if the digests differ."""
    parser = argparse.ArgumentParser(
        prog="python -m kernbench.speed.processes", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--sips", type=int, default=4)
    parser.add_argument("--procs", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    options, arguments = parser.parse_known_args()
    columns = [1, *options.procs]
    runs = {procs: [measure(options.sips, procs, arguments)] for procs in columns}
    for _ in range(options.rounds - 1):
        for procs in columns:
            runs[procs].append(measure(options.sips, procs, arguments))
    digests = {run["digest"] for each in runs.values() for run in each}
    print(
        f"{options.sips} SIPs, {runs[1][0]['events']:,} events, {options.rounds} rounds, "
        f"digest {min(digests):.16}"
    )
    print(f"{'processes':>10} {'wall s':>8} {'events/s':>10} {'speed against 1':>16}")
    for procs in columns:
        walls = [float(run["wall_s"]) for run in runs[procs]]
        ratios = [float(alone["wall_s"]) / wall for alone, wall in zip(runs[1], walls, strict=True)]
        rate = float(runs[procs][0]["events"]) / median(walls)
        print(f"{procs:>10} {median(walls):>8.3f} {rate:>10,.0f} {median(ratios):>15.2f}x")
    return 0 if len(digests) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
