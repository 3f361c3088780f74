"""Registers `kernbench --bench moe-all-to-all`; loads the study when it runs."""

from kernbench.studies.moe_all_to_all.points import LEAST_RANKS, MOST_RANKS, MoeFlags
from runtime.core.bench_registry import StudyOptions, study
from runtime.core.errors import UsageError

DRAWN = ("--exponents", "--tokens", "--top-k")
"""The flags that draw a routing."""
_DEFAULT = MoeFlags()


@study(
    "moe-all-to-all",
    "tokens to their experts on other SIPs and back, by the skew of the routing, "
    "against the busiest port; JSON and figure",
    ranks=f"numbers of ranks, from {LEAST_RANKS} to {MOST_RANKS}, with commas",
    exponents="exponents of the Zipf law of the routing, with commas; 0 is uniform",
    tokens="tokens of a rank",
    hidden="elements of a token, float16",
    experts="experts of all ranks",
    top_k="experts of a token",
    seed="seed of routing, weights and tokens",
    routing="file with the experts of each token, a line each, instead of a Zipf law",
)
def moe_all_to_all(  # noqa: PLR0913 - the flags
    options: StudyOptions,
    *,
    ranks: str = _DEFAULT.ranks,
    exponents: str = _DEFAULT.exponents,
    tokens: int = _DEFAULT.tokens,
    hidden: int = _DEFAULT.hidden,
    experts: int = _DEFAULT.experts,
    top_k: int = _DEFAULT.top_k,
    seed: int = _DEFAULT.seed,
    routing: str = _DEFAULT.routing,
) -> bool:
    """Whether every element is right and no time below its bound."""
    from kernbench.studies.moe_all_to_all.definition import MoeStudy

    flags = MoeFlags(
        ranks=ranks,
        exponents=exponents,
        tokens=tokens,
        hidden=hidden,
        experts=experts,
        top_k=top_k,
        seed=seed,
        routing=routing,
    )
    for flag in DRAWN:
        if routing and flag in options.changed:
            raise UsageError(f"{flag} with --routing {routing}: the file has the experts of tokens")
    return MoeStudy(flags).run(options)
