"""Registers `kernbench --bench milestone-1h-ccl`; loads the study when it runs."""

from runtime.core.bench_registry import StudyOptions, study

MAX_BYTES = 262_144


@study(
    "milestone-1h-ccl",
    "all-reduce by size, SIP topology and kind of queue, "
    "against its closed forms and another simulator; JSON, CSV and figures",
    max_bytes="largest size a PE, bytes; sizes go from 256 by factors of 4",
)
def milestone_1h_ccl(options: StudyOptions, *, max_bytes: int = MAX_BYTES) -> bool:
    """Whether every sum is right and no time below its bound."""
    from kernbench.studies.milestone_1h_ccl.definition import CclStudy

    return CclStudy(max_bytes).run(options)
