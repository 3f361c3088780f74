"""Registers `kernbench --bench ccl-algorithms`; loads the study when it runs."""

from runtime.core.bench_registry import StudyOptions, study

MAX_BYTES = 524_288


@study(
    "ccl-algorithms",
    "every collective by algorithm, size and number of ranks; "
    "the selection of ccl.yaml that follows; JSON, CSV and figure",
    max_bytes="largest size a rank, bytes; sizes are 2, then go from 128 by factors of 4",
)
def ccl_algorithms(options: StudyOptions, *, max_bytes: int = MAX_BYTES) -> bool:
    """Whether every result is right."""
    from kernbench.studies.ccl_algorithms.definition import AlgorithmStudy

    return AlgorithmStudy(max_bytes).run(options)
