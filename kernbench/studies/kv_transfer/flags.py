"""The flags of the study, and the sizes that they name."""

from dataclasses import dataclass

from kernbench.benches.flags import check_choice, check_least
from kernbench.studies.kv_transfer.rows import KvSizes
from kernbench.studies.kv_transfer.sides import RankOrder
from kernbench.studies.llama70b_layer.shape import LAYERS, LLAMA_70B
from kernbench.studies.number_list import distinct_values, rising_numbers
from runtime.core.errors import UsageError

NETWORKS = ("ring_1d", "mesh_2d_no_wrap")
MOST_TOKENS = 1 << 17
"""The longest prompt."""


@dataclass(frozen=True, kw_only=True)
class KvFlags:
    """The flags as they are given."""

    pairs: str = "1:4,2:2,2:4,4:2"
    tokens: str = "512,2048,8192"
    orders: str = ",".join(RankOrder)
    layers: int = 2
    new_tokens: int = 64
    network: str = "ring_1d"

    @property
    def sizes(self) -> KvSizes:
        """The sizes of the sweep; raises `UsageError` for flags that name none."""
        if not 1 <= self.layers <= LAYERS:
            raise UsageError(f"--layers {self.layers}: llama-70B has 1 to {LAYERS} layers")
        check_least(1, new_tokens=self.new_tokens)
        check_choice("network", self.network, NETWORKS)
        return KvSizes(
            pairs=tuple(map(_pair, distinct_values("--pairs", self.pairs))),
            orders=tuple(map(_order, distinct_values("--orders", self.orders))),
            tokens=rising_numbers("--tokens", self.tokens, 1, MOST_TOKENS),
            layers=self.layers,
            new_tokens=self.new_tokens,
            network=self.network,
        )


def _pair(text: str) -> tuple[int, int]:
    heads = LLAMA_70B.kv_heads
    known = {str(count): count for count in range(1, heads + 1) if not heads % count}
    numbers = [known[part] for part in text.split(":") if part in known]
    if text.count(":") != 1 or len(numbers) != 2:
        raise UsageError(
            f"--pairs: {text!r} must be numbers of SIPs of the prefill and of the decode, such as "
            f"2:4, which divide the {heads} KV heads"
        )
    return numbers[0], numbers[1]


def _order(text: str) -> RankOrder:
    check_choice("orders", text, [each.value for each in RankOrder])
    return RankOrder(text)
