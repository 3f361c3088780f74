"""How fast the simulator is: the same run with different numbers of processes, side by side.

Runs alternate (1, 2, 4, 1, 2, 4 ...), so that a machine whose speed drifts does not favour one; ratios are taken round by
round against one process, and their median is what counts.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

LAUNCH = Path(__file__).parents[2] / "launch.py"


def measure(sips: int, procs: int, words: list[str]) -> dict[str, float | str]:
    """Wall seconds (start-up not counted), events and digest of one run."""
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
            *words,
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
    options, words = parser.parse_known_args()
    columns = [1, *options.procs]
    runs = {procs: [measure(options.sips, procs, words)] for procs in columns}
    for _ in range(options.rounds - 1):
        for procs in columns:
            runs[procs].append(measure(options.sips, procs, words))
    digests = {run["digest"] for each in runs.values() for run in each}
    print(
        f"{options.sips} SIPs, {runs[1][0]['events']:,} events, {options.rounds} rounds, digest {min(digests):.16}"
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
