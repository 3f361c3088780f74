"""`kernbench --bench ccl-algorithms`: simulate the sweep, or read it again; draw it, print it and the table that it gives."""

from kernbench.studies.milestone import DEFAULT_OUT, drawing, is_fast, listed, simulated
from runtime.core.bench_registry import StudyOptions, study
from runtime.core.config_file import default_file, read_text

SWEEP_FILE, SUMMARY_FILE = "ccl_algorithms.json", "ccl_algorithms.csv"
MAX_BYTES = 131_072


@study(
    "ccl-algorithms",
    "all-reduce by every algorithm, size and number of ranks; the selection of ccl.yaml that follows; JSON, CSV and figure",
    max_bytes="largest size a rank, bytes; sizes are 2, then go from 128 by factors of 4",
)
def ccl_algorithms(options: StudyOptions, *, max_bytes: int = MAX_BYTES) -> bool:
    """Whether every sum is right."""
    from kernbench.studies.ccl_algorithms.rows import read_sweep, write_summary
    from kernbench.studies.ccl_algorithms.table import findings, print_table, verdict
    from runtime.ccl.config import load_ccl

    draw = drawing("kernbench.studies.ccl_algorithms.figures")
    file = (options.out or DEFAULT_OUT) / SWEEP_FILE
    if is_fast(options, file, "--max-bytes", given=max_bytes != MAX_BYTES):
        sweep = read_sweep(file)
    else:
        from kernbench.studies.ccl_algorithms.sweep import plan_sweep, simulate_sweep

        ccl = read_text(default_file("ccl.yaml"))
        sweep = simulated(
            options,
            file,
            lambda source, text: plan_sweep(source, text, ccl, max_bytes),
            simulate_sweep,
        )
    files = [file, write_summary(file.parent / SUMMARY_FILE, sweep.rows), *draw(sweep, file.parent)]
    print_table(sweep.rows)
    print(*findings(sweep.rows, load_ccl()), *verdict(sweep.rows), *listed(files, 20), sep="\n")
    return not any(row.faults for row in sweep.rows)
