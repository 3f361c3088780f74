"""Registers `kernbench --bench kv-transfer`; loads the study when it runs."""

from kernbench.studies.kv_transfer.flags import KvFlags
from runtime.core.bench_registry import StudyOptions, study

_DEFAULT = KvFlags()


@study(
    "kv-transfer",
    "KV cache from SIPs that prefill to SIPs that decode, with other numbers of heads a SIP: what "
    "it adds to the time to first token, after the prefill and beside it; bounds, shared links",
    pairs="SIPs of the prefill and of the decode, such as 2:4, with commas",
    tokens="tokens of the prompt, rising, with commas",
    orders="orders of both sides along the SIPs, with commas: blocks, mirrored, interleaved",
    layers="layers of the model that are simulated",
    new_tokens="tokens that the prefill computes, at most all; a prefix cache has those before",
    network="links between SIPs: ring_1d or mesh_2d_no_wrap",
)
def kv_transfer(
    options: StudyOptions,
    *,
    pairs: str = _DEFAULT.pairs,
    tokens: str = _DEFAULT.tokens,
    orders: str = _DEFAULT.orders,
    layers: int = _DEFAULT.layers,
    new_tokens: int = _DEFAULT.new_tokens,
    network: str = _DEFAULT.network,
) -> bool:
    """Whether every element is right and no time below its bound."""
    from kernbench.studies.kv_transfer.definition import KvTransferStudy

    flags = KvFlags(
        pairs=pairs,
        tokens=tokens,
        orders=orders,
        layers=layers,
        new_tokens=new_tokens,
        network=network,
    )
    return KvTransferStudy(flags).run(options)
