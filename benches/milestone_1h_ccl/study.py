"""`kernbench --bench milestone-1h-ccl`: simulate the sweep, or read it again; draw it, print it."""

import os
from typing import TYPE_CHECKING

from benches.studies.milestone import DEFAULT_OUT, drawing, is_fast, made, refuse_choices
from runtime.bench_registry import StudyOptions, study
from runtime.config_file import default_file, read_text

if TYPE_CHECKING:
    from pathlib import Path

    from benches.milestone_1h_ccl.rows import Sweep

SWEEP_FILE, SUMMARY_FILE = "ccl_sweep.json", "ccl_summary.csv"
MAX_BYTES = 262_144


@study(
    "milestone-1h-ccl",
    "all-reduce by size, SIP topology and kind of queue, against its closed forms and another simulator; JSON, CSV and figures",
    max_bytes="largest size a PE, bytes; sizes go from 256 by factors of 4, those of intercube to 131072 / SIPs",
)
def milestone_1h_ccl(options: StudyOptions, *, max_bytes: int = MAX_BYTES) -> bool:
    """Whether every sum is right and no time below its bound."""
    from benches.milestone_1h_ccl.rows import read_sweep, write_summary
    from benches.milestone_1h_ccl.table import print_table, reference_lines, verdict

    draw = drawing("benches.milestone_1h_ccl.figures")
    directory = options.out or DEFAULT_OUT
    if is_fast():
        refuse_choices(SWEEP_FILE, (("--topology", options.topology is not None), ("--max-bytes", max_bytes != MAX_BYTES)))
        sweep = read_sweep(directory / SWEEP_FILE)
    else:
        sweep = _simulated(options, max_bytes, directory)
    files = [directory / SWEEP_FILE, write_summary(directory / SUMMARY_FILE, sweep), *draw(sweep, directory)]
    print_table(sweep)
    named = (f"{'files' if file == files[0] else '':<16}{file}" for file in files)
    for line in (*reference_lines(), *verdict(sweep.rows), *named):
        print(line)
    return not any(row.faults for row in sweep.rows)


def _simulated(options: StudyOptions, max_bytes: int, directory: "Path") -> "Sweep":
    from benches.milestone_1h_ccl.rows import write_sweep
    from benches.milestone_1h_ccl.sweep import plan_sweep, simulate_sweep

    source = options.topology or default_file("topology.yaml")
    ccl = read_text(default_file("ccl.yaml"))
    plan = plan_sweep(str(options.topology or source.name), read_text(source), ccl, max_bytes)
    made(directory)
    sweep = simulate_sweep(plan, options.procs or os.cpu_count() or 1, options.timeout_s)
    write_sweep(directory / SWEEP_FILE, sweep)
    return sweep
