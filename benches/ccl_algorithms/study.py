"""`kernbench --bench ccl-algorithms`: simulate the sweep, or read it again; draw it, print it and the table that it gives."""

import os
from typing import TYPE_CHECKING

from benches.studies.milestone import DEFAULT_OUT, drawing, is_fast, made, refuse_choices
from runtime.bench_registry import StudyOptions, study
from runtime.config_file import default_file, read_text

if TYPE_CHECKING:
    from pathlib import Path

    from benches.ccl_algorithms.rows import Sweep

SWEEP_FILE, SUMMARY_FILE = "ccl_algorithms.json", "ccl_algorithms.csv"
MAX_BYTES = 131_072


@study(
    "ccl-algorithms",
    "all-reduce by every algorithm, size and number of ranks; the selection of ccl.yaml that follows; JSON, CSV and figure",
    max_bytes="largest size a rank, bytes; sizes are 2, then go from 128 by factors of 4",
)
def ccl_algorithms(options: StudyOptions, *, max_bytes: int = MAX_BYTES) -> bool:
    """Whether every sum is right."""
    from benches.ccl_algorithms.rows import read_sweep, write_summary
    from benches.ccl_algorithms.table import findings, print_table, verdict
    from runtime.ccl.config import load_ccl

    draw = drawing("benches.ccl_algorithms.figures")
    directory = options.out or DEFAULT_OUT
    if is_fast():
        refuse_choices(SWEEP_FILE, (("--topology", options.topology is not None), ("--max-bytes", max_bytes != MAX_BYTES)))
        sweep = read_sweep(directory / SWEEP_FILE)
    else:
        sweep = _simulated(options, max_bytes, directory)
    files = [directory / SWEEP_FILE, write_summary(directory / SUMMARY_FILE, sweep.rows), *draw(sweep, directory)]
    print_table(sweep.rows)
    named = (f"{'files' if file == files[0] else '':<20}{file}" for file in files)
    for line in (*findings(sweep.rows, load_ccl()), *verdict(sweep.rows), *named):
        print(line)
    return not any(row.faults for row in sweep.rows)


def _simulated(options: StudyOptions, max_bytes: int, directory: "Path") -> "Sweep":
    from benches.ccl_algorithms.rows import write_sweep
    from benches.ccl_algorithms.sweep import plan_sweep, simulate_sweep

    source = options.topology or default_file("topology.yaml")
    ccl = read_text(default_file("ccl.yaml"))
    plan = plan_sweep(str(options.topology or source.name), read_text(source), ccl, max_bytes)
    made(directory)
    sweep = simulate_sweep(plan, options.procs or os.cpu_count() or 1, options.timeout_s)
    write_sweep(directory / SWEEP_FILE, sweep)
    return sweep
