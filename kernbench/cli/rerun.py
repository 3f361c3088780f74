"""Repeats a recorded run with another topology file, by the command that a user would type."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from kernbench.run_records import RecordedRun, read_report
from runtime.core.errors import UsageError


def simulated_ps(records: RecordedRun, topology_text: str, what: str) -> int:
    """The time of the run on another machine, simulated. Raises `UsageError` naming `what`."""
    with TemporaryDirectory(prefix="kernbench-why-") as name:
        directory = Path(name)
        topology, ccl = directory / "topology.yaml", directory / "ccl.yaml"
        topology.write_text(topology_text, encoding="utf-8")
        ccl.write_text(records.ccl_text, encoding="utf-8")
        out = directory / "run"
        files = ["--topology", str(topology), "--ccl", str(ccl), "--out", str(out)]
        command = [sys.executable, "-m", "kernbench", *files, *arguments(records)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the program of the run
        if ended.returncode != 0:
            lines = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
            raise UsageError(f"why: the run with {what} failed: {lines[-1]}")
        return read_report(out).total_ps


def arguments(records: RecordedRun) -> Iterator[str]:
    """The options that repeat a run without a trace, besides its files.

    Raises `UsageError` for a run that no command line has started.
    """
    run = records.run
    yield from ("--sips", str(run.sips), "--no-trace")
    if not run.data:
        yield "--no-data"
    if run.as_cuda:
        yield "--as-cuda"
    match run.kind:
        case "bench":
            yield from ("--bench", run.program)
            for name, value in run.arguments.items():
                option = name.replace("_", "-")
                if isinstance(value, bool):
                    yield f"--{option}" if value else f"--no-{option}"
                else:
                    yield f"--{option}={value}"
        case "script":
            yield run.program
        case "module":
            yield from ("-m", run.program)
        case _:
            raise UsageError(
                f"why: {records.name}: the program {run.bench} has started this run by itself "
                "(torch.multiprocessing.spawn): no command can repeat it"
            )
    yield from run.argv
