"""`perf --on ENGINE`: the measurement is made by a worker of an executor, and reported here.

It is one simulation, hence one point. The worker runs the same command with the contents of the
configuration files, and returns what that has printed and written.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from coordinator.launch.launcher import lp_environment
from kernbench.measure.collectives.arguments import PerfRequest
from kernbench.points.driver import PointMeasurement, PointOptions, measured_points
from kernbench.points.task import LOCAL, PointFault
from runtime.core.config.config_file import default_file, read_text
from runtime.core.errors import RunAborted, UsageError
from runtime.core.output import clear_output, print_lines, write_output


@dataclass(frozen=True)
class PerfPoint:
    """The arguments of a command, and the texts of the configuration files.

    With `json` the rows are made as JSON too.
    """

    arguments: tuple[str, ...]
    topology: str
    ccl: str
    json: bool
    cost: int = 1

    def __str__(self) -> str:
        return " ".join(("perf", *self.arguments))


class PerfText(Struct, frozen=True):
    """Output of the command: its printed text, its exit code, and the rows as JSON."""

    printed: str
    errors: str
    code: int
    json: bytes | None


def measure_elsewhere(request: PerfRequest, arguments: tuple[str, ...], on: str) -> int:
    """Make the measurement on `on`, and print and write its report; returns the exit code.

    `arguments` are those of the command. Raises `UsageError` for an option that needs the files of
    a run here, and for an engine that cannot be used, and `RunAborted` if the worker dies.
    """
    if request.options.out is not None:
        raise UsageError("perf: --out with --on: the records of a run stay where it is made")
    if request.json is not None:
        clear_output(request.json, "perf: --json")
    options = request.options
    point = PerfPoint(
        arguments,
        read_text(options.topology or default_file("topology.yaml")),
        read_text(options.ccl or default_file("ccl.yaml")),
        json=request.json is not None,
    )
    measurement = PointMeasurement(_measured, PerfText, "measurements", lambda _: "complete")
    result = measured_points(measurement, [point], PointOptions(on))[point]
    if isinstance(result, PointFault):
        raise RunAborted(f"--on {on}: {result.reason}")
    sys.stderr.write(result.errors)
    print_lines([result.printed.rstrip("\n")])
    if request.json is not None and result.json is not None:
        write_output(request.json, result.json)
    return result.code


def _measured(point: PerfPoint) -> PerfText:
    """Run the command on this machine."""
    with TemporaryDirectory(prefix="kernbench-perf-") as name:
        topology, ccl, json = (Path(name, each) for each in ("topology.yaml", "ccl.yaml", "json"))
        topology.write_text(point.topology, encoding="utf-8")
        ccl.write_text(point.ccl, encoding="utf-8")
        # The last one of equal options counts.
        own = ["--on", LOCAL, "--topology", str(topology), "--ccl", str(ccl)]
        own += ["--json", str(json)] if point.json else []
        ended = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-P", "-m", "kernbench", "perf", *point.arguments, *own],
            env=lp_environment(os.environ),
            capture_output=True,
            text=True,
            check=False,
        )
        content = json.read_bytes() if json.exists() else None
        return PerfText(ended.stdout, ended.stderr, ended.returncode, content)
