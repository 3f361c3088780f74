"""Registers `kernbench --bench milestone-gqa-llama70b`; loads the study when it runs."""

import os

from runtime.core.bench_registry import StudyOptions, study
from runtime.core.errors import UsageError

VALIDATION = "GQA_VALIDATION"
"""Environment variable: `1` runs the validation scale."""


@study(
    "milestone-gqa-llama70b",
    f"grouped-query attention on rings of PEs: prefill and decode ({VALIDATION}=1)",
)
def milestone_gqa_llama70b(options: StudyOptions) -> bool:
    """Whether every result is right and no time below its bound."""
    value = os.environ.get(VALIDATION, "")
    if value != "1":
        raise UsageError(f"{VALIDATION} is {value!r}: 1 runs the validation scale")
    from kernbench.studies.milestone_gqa_llama70b.validation import ValidationStudy

    return ValidationStudy().run(options, {})
