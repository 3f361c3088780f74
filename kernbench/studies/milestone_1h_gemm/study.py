"""`kernbench --bench milestone-1h-gemm`: simulate the sweep, or read it again; draw it, print it."""

from kernbench.studies.milestone import DEFAULT_OUT, drawing, is_fast, listed, simulated
from kernbench.studies.milestone_1h_gemm.shapes import DEFAULT, parse_shapes
from runtime.core.bench_registry import StudyOptions, study

SWEEP_FILE = "gemm_sweep.json"


@study(
    "milestone-1h-gemm",
    "matrix products on one PE, in shapes x stagings: stage times, utilisation, theory; JSON and figures",
    shapes="products to simulate, as MxKxN,MxKxN,...",
)
def milestone_1h_gemm(options: StudyOptions, *, shapes: str = DEFAULT) -> bool:
    """Whether every product is right, not faster than its bound, and within the peak."""
    from kernbench.studies.milestone_1h_gemm.rows import read_sweep
    from kernbench.studies.milestone_1h_gemm.table import print_table, verdict

    draw = drawing("kernbench.studies.milestone_1h_gemm.figures")
    file = (options.out or DEFAULT_OUT) / SWEEP_FILE
    if is_fast(options, file, "--shapes", given=shapes != DEFAULT):
        sweep = read_sweep(file)
    else:
        from kernbench.studies.milestone_1h_gemm.sweep import plan_sweep, simulate_sweep

        sweep = simulated(
            options,
            file,
            lambda source, text: plan_sweep(source, text, parse_shapes(shapes)),
            simulate_sweep,
        )
    files = [file, *draw(sweep, file.parent)]
    print_table(sweep)
    print(*verdict(sweep.rows), *listed(files, 16), sep="\n")
    return not any(row.faults for row in sweep.rows)
