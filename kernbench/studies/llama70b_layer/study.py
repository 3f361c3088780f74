"""Registers `kernbench --bench llama70b-layer`; loads the study when it runs."""

from runtime.core.bench_registry import StudyOptions, study

CONTEXT, TOKENS, SIPS = 8192, 64, "1,2,8"


@study(
    "llama70b-layer",
    "a whole layer of llama-70B, tensor parallel over 1 to 8 SIPs, by part; JSON and figure",
    context="tokens to which a decode attends, the new one among them; a multiple of 128",
    tokens="tokens of the prefill, a multiple of 64 up to 4096; 0: decode only",
    sips_list="numbers of SIPs, rising, separated by commas: 1, 2, 4, 8",
)
def llama70b_layer(
    options: StudyOptions, *, context: int = CONTEXT, tokens: int = TOKENS, sips_list: str = SIPS
) -> bool:
    """Whether every checked result is right and no part below its bound."""
    from kernbench.studies.llama70b_layer.definition import LayerStudy

    return LayerStudy(context, tokens, sips_list).run(options)
