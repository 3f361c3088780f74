"""Registers `kernbench --bench llama70b-layer`; loads the study when it runs."""

from runtime.core.bench_registry import StudyOptions, study
from runtime.core.errors import UsageError

CONTEXT, TOKENS = 8192, 64


@study(
    "llama70b-layer",
    "a whole layer of llama-70B, tensor parallel over 1 to 8 SIPs, by part; JSON and figure",
    context="tokens to which a decode attends, the new one among them; a multiple of 128",
    tokens="tokens of the prefill, a multiple of 64 up to 256; 0: decode only",
)
def llama70b_layer(options: StudyOptions, *, context: int = CONTEXT, tokens: int = TOKENS) -> bool:
    """Whether every checked result is right and no part below its bound."""
    if context < 1:
        raise UsageError(f"--context {context}: at least 1")
    if tokens < 0:
        raise UsageError(f"--tokens {tokens}: at least 0")
    from kernbench.studies.llama70b_layer.definition import LayerStudy

    return LayerStudy(context, tokens).run(options)
