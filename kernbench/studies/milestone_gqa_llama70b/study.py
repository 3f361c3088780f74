"""Registers `kernbench --bench milestone-gqa-llama70b`; loads the study when it runs."""

import os

from runtime.core.bench_registry import StudyOptions, study
from runtime.core.errors import UsageError

VALIDATION = "GQA_VALIDATION"
"""Environment variable: `1` runs the validation scale, `0` or nothing the headline scale."""
PREFILL, DECODE, SIPS, BATCH = "512,1024,2048,4096", "1024,4096,8192", "1,2,4,8", 4


@study(
    "milestone-gqa-llama70b",
    "grouped-query attention of llama-70B, prefill and decode of a layer on 1 to 8 SIPs: times, "
    f"parts, bounds; {VALIDATION}=1 checks counts and values on rings of PEs",
    prefill="tokens of a prefill, rising, separated by commas",
    decode="tokens in the KV cache of a decode, likewise",
    sips_list="numbers of SIPs, over which the heads are divided, likewise",
    batch="users of the panels with several users",
)
def milestone_gqa_llama70b(
    options: StudyOptions,
    *,
    prefill: str = PREFILL,
    decode: str = DECODE,
    sips_list: str = SIPS,
    batch: int = BATCH,
) -> bool:
    """Whether every result is right and no time below its bound."""
    value = os.environ.get(VALIDATION, "")
    if value not in ("", "0", "1"):
        raise UsageError(
            f"{VALIDATION} is {value!r}: 1 runs the validation scale, 0 or nothing the headline"
        )
    if value == "1":
        if options.changed:
            flag = options.changed[0]
            raise UsageError(f"{flag} with {VALIDATION}=1: the validation scale has fixed sizes")
        from kernbench.studies.milestone_gqa_llama70b.validation import ValidationStudy

        return ValidationStudy().run(options)
    from kernbench.studies.milestone_gqa_llama70b.headline import HeadlineStudy

    sizes = HeadlineStudy(prefill=prefill, decode=decode, sips=sips_list, batch=batch)
    return sizes.run(options)
