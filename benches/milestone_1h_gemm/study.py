"""`kernbench --bench milestone-1h-gemm`: simulate the sweep, or read it again; draw it, print it."""

import os
from typing import TYPE_CHECKING

from benches.milestone_1h_gemm.shapes import DEFAULT, parse_shapes
from benches.studies.milestone import DEFAULT_OUT, drawing, is_fast, made, refuse_choices
from runtime.bench_registry import StudyOptions, study
from runtime.config_file import default_file, read_text

if TYPE_CHECKING:
    from pathlib import Path

    from benches.milestone_1h_gemm.rows import Sweep

SWEEP_FILE = "gemm_sweep.json"


@study(
    "milestone-1h-gemm",
    "matrix products on one PE, in shapes x stagings: stage times, utilisation, theory; JSON and figures",
    shapes="products to simulate, as MxKxN,MxKxN,...",
)
def milestone_1h_gemm(options: StudyOptions, *, shapes: str = DEFAULT) -> bool:
    """Whether every product is right, not faster than its bound, and within the peak."""
    from benches.milestone_1h_gemm.rows import read_sweep
    from benches.milestone_1h_gemm.table import print_table, verdict

    draw = drawing("benches.milestone_1h_gemm.figures")
    directory = options.out or DEFAULT_OUT
    if is_fast():
        refuse_choices(SWEEP_FILE, (("--topology", options.topology is not None), ("--shapes", shapes != DEFAULT)))
        sweep = read_sweep(directory / SWEEP_FILE)
    else:
        sweep = _simulated(options, shapes, directory)
    files = [directory / SWEEP_FILE, *draw(sweep, directory)]
    print_table(sweep)
    for line in (*verdict(sweep.rows), *(f"{'files' if file == files[0] else '':<16}{file}" for file in files)):
        print(line)
    return not any(row.faults for row in sweep.rows)


def _simulated(options: StudyOptions, shapes: str, directory: "Path") -> "Sweep":
    from benches.milestone_1h_gemm.rows import write_sweep
    from benches.milestone_1h_gemm.sweep import plan_sweep, simulate_sweep

    source = options.topology or default_file("topology.yaml")
    plan = plan_sweep(str(options.topology or source.name), read_text(source), parse_shapes(shapes))
    made(directory)
    sweep = simulate_sweep(plan, options.procs or os.cpu_count() or 1, options.timeout_s)
    write_sweep(directory / SWEEP_FILE, sweep)
    return sweep
