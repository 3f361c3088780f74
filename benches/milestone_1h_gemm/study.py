"""`kernbench --bench milestone-1h-gemm`: simulate the sweep, or read it again; draw it, print it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from benches.milestone_1h_gemm.shapes import DEFAULT, parse_shapes
from runtime.bench_registry import StudyOptions, study
from runtime.config_file import default_file, read_text
from runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from benches.milestone_1h_gemm.rows import Sweep

DEFAULT_OUT = Path("benches/1H_milestone_output")
"""Below the current directory."""
SWEEP_FILE = "gemm_sweep.json"
FAST = "MILESTONE_FAST"
"""Environment variable: `1` draws and prints what is in the file, without simulating."""


@study(
    "milestone-1h-gemm",
    "matrix products on one PE, in shapes x stagings: stage times, utilisation, theory; JSON and figures",
    shapes="products to simulate, as MxKxN,MxKxN,...",
)
def milestone_1h_gemm(options: StudyOptions, *, shapes: str = DEFAULT) -> bool:
    """Whether every product is right, not faster than its bound, and within the peak."""
    from benches.milestone_1h_gemm.rows import read_sweep
    from benches.milestone_1h_gemm.table import print_table, verdict

    draw = _drawing()
    directory = options.out or DEFAULT_OUT
    if _fast():
        _refuse_choices(options, shapes)
        sweep = read_sweep(directory / SWEEP_FILE)
    else:
        sweep = _simulated(options, shapes, directory)
    files = [directory / SWEEP_FILE, *draw(sweep, directory)]
    print_table(sweep)
    for line in (*verdict(sweep.rows), *(f"{'files' if file == files[0] else '':<16}{file}" for file in files)):
        print(line)
    return not any(row.faults for row in sweep.rows)


def _simulated(options: StudyOptions, shapes: str, directory: Path) -> "Sweep":
    from benches.milestone_1h_gemm.rows import write_sweep
    from benches.milestone_1h_gemm.sweep import plan_sweep, simulate_sweep

    source = options.topology or default_file("topology.yaml")
    plan = plan_sweep(str(options.topology or source.name), read_text(source), parse_shapes(shapes))
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out: cannot write to {directory}: {error.strerror}") from error
    sweep = simulate_sweep(plan, options.procs or os.cpu_count() or 1, options.timeout_s)
    write_sweep(directory / SWEEP_FILE, sweep)
    return sweep


def _fast() -> bool:
    value = os.environ.get(FAST, "")
    if value not in ("", "0", "1"):
        raise UsageError(f"{FAST} is {value!r}: 1 draws the figures again without simulating, 0 or nothing simulates")
    return value == "1"


def _refuse_choices(options: StudyOptions, shapes: str) -> None:
    for word, given in (("--topology", options.topology is not None), ("--shapes", shapes != DEFAULT)):
        if given:
            raise UsageError(f"{word} with {FAST}=1: nothing is simulated, the figures show what is in {SWEEP_FILE}")


def _drawing() -> "Callable[[Sweep, Path], list[Path]]":
    try:
        from benches.milestone_1h_gemm.figures import draw
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise UsageError("the figures need matplotlib, the extra `plots`: pip install 'kernbench[plots]'") from error
    return draw
