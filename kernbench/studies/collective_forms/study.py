"""Registers `kernbench --bench collective-forms`; loads the study when it runs."""

from runtime.core.bench_registry import StudyOptions, study

RANKS, MAX_BYTES, ALL_PES_BYTES = "2,3,4,8,16", 1 << 24, 1 << 22


@study(
    "collective-forms",
    "every collective by number of ranks and size, with one PE and with all PEs a rank, "
    "against its closed form; JSON and figure",
    ranks="numbers of ranks, rising, separated by commas",
    max_bytes="largest tensor of a rank on one PE, bytes; sizes go from 65536 by factors of 4",
    all_pes_bytes="the same on all PEs, from 262144 on; 0: on one PE only",
)
def collective_forms(
    options: StudyOptions,
    *,
    ranks: str = RANKS,
    max_bytes: int = MAX_BYTES,
    all_pes_bytes: int = ALL_PES_BYTES,
) -> bool:
    """Whether every result is right."""
    from kernbench.studies.collective_forms.definition import FormStudy

    return FormStudy(ranks, max_bytes, all_pes_bytes).run(options)
