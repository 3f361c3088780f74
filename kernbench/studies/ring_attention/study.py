"""Registers `kernbench --bench ring-attention`; loads the study when it runs."""

from runtime.core.bench_registry import StudyOptions, study

TOKENS, SIPS, HEADS = "1024,2048", "2,4,8", 4


@study(
    "ring-attention",
    "attention over sequences divided over 2 to 8 SIPs, keys and values going round the ring: "
    "times, exposed communication, bounds; zig-zag against contiguous chunks",
    tokens="tokens of the sequence, rising, separated by commas",
    sips_list="numbers of SIPs, likewise",
    heads="heads of the layer, each on one PE of a cube",
)
def ring_attention(
    options: StudyOptions, *, tokens: str = TOKENS, sips_list: str = SIPS, heads: int = HEADS
) -> bool:
    """Whether every result is right and no time below its bound."""
    from kernbench.studies.ring_attention.definition import RingAttentionStudy

    return RingAttentionStudy(tokens=tokens, sips=sips_list, heads=heads).run(options)
