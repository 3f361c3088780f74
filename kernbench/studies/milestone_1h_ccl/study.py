"""`kernbench --bench milestone-1h-ccl`: simulate the sweep, or read it again; draw it, print it."""

from kernbench.studies.milestone import DEFAULT_OUT, drawing, is_fast, listed, simulated
from runtime.core.bench_registry import StudyOptions, study
from runtime.core.config_file import default_file, read_text

SWEEP_FILE, SUMMARY_FILE = "ccl_sweep.json", "ccl_summary.csv"
MAX_BYTES = 262_144


@study(
    "milestone-1h-ccl",
    "all-reduce by size, SIP topology and kind of queue, against its closed forms and another simulator; JSON, CSV and figures",
    max_bytes="largest size a PE, bytes; sizes go from 256 by factors of 4, those of intercube to 131072 / SIPs",
)
def milestone_1h_ccl(options: StudyOptions, *, max_bytes: int = MAX_BYTES) -> bool:
    """Whether every sum is right and no time below its bound."""
    from kernbench.studies.milestone_1h_ccl.rows import read_sweep, write_summary
    from kernbench.studies.milestone_1h_ccl.table import print_table, reference_lines, verdict

    draw = drawing("kernbench.studies.milestone_1h_ccl.figures")
    file = (options.out or DEFAULT_OUT) / SWEEP_FILE
    if is_fast(options, file, "--max-bytes", given=max_bytes != MAX_BYTES):
        sweep = read_sweep(file)
    else:
        from kernbench.studies.milestone_1h_ccl.sweep import plan_sweep, simulate_sweep

        ccl = read_text(default_file("ccl.yaml"))
        sweep = simulated(
            options,
            file,
            lambda source, text: plan_sweep(source, text, ccl, max_bytes),
            simulate_sweep,
        )
    files = [file, write_summary(file.parent / SUMMARY_FILE, sweep), *draw(sweep, file.parent)]
    print_table(sweep)
    print(*reference_lines(), *verdict(sweep.rows), *listed(files, 16), sep="\n")
    return not any(row.faults for row in sweep.rows)
