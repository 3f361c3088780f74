"""The sizes of a decoder layer, and of the part of it that one rank computes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernbench.studies.sip_count import sip_count
from runtime.core.errors import UsageError

ITEM_BYTES = 2
"""Of an element of a weight or an activation."""
TOKENS = 64
"""Tokens of a block of a prefill."""
MOST_TOKENS = 4096
"""Tokens of a prefill."""
MOST_KEYS = 1024
"""Keys of one PE in a decode."""


@dataclass(frozen=True, kw_only=True)
class LayerShape:
    """A layer of `hidden` columns for `tokens` new tokens, the last of `context` tokens.

    `heads` query heads in groups, of which each uses one of `kv_heads` heads of keys and values;
    heads have `depth` columns, the MLP has `inner` ones.
    """

    hidden: int
    inner: int
    heads: int
    kv_heads: int
    depth: int
    tokens: int
    context: int

    @property
    def group(self) -> int:
        """The query heads that share a head of keys and values."""
        return self.heads // self.kv_heads

    @property
    def is_decode(self) -> bool:
        """Whether there is one new token behind a cache; else there is no cache."""
        return self.tokens == 1

    @property
    def qkv(self) -> int:
        """Columns of queries, keys and values."""
        return (self.heads + 2 * self.kv_heads) * self.depth

    @property
    def weights(self) -> int:
        """Elements of all matrices."""
        return self.hidden * (self.qkv + self.heads * self.depth + 3 * self.inner)

    def of_rank(self, ranks: int) -> "LayerShape":
        """The part of one of `ranks` ranks: whole groups of heads, and columns of the MLP."""
        return replace(
            self,
            inner=self.inner // ranks,
            heads=self.heads // ranks,
            kv_heads=self.kv_heads // ranks,
        )

    def check(self, ranks: int, cubes: int, pes: int) -> None:
        """Raise `UsageError` for sizes that ranks, cubes or PEs do not divide."""
        if self.kv_heads % ranks:
            raise UsageError(
                f"--sips-list {ranks}: the {self.kv_heads} KV heads do not divide by it"
            )
        own, all_pes = self.of_rank(ranks), cubes * pes
        for name, size in (
            ("hidden columns", self.hidden),
            ("columns of queries, keys and values", own.qkv),
            ("columns of the attention", own.heads * own.depth),
            ("columns of the MLP", own.inner),
        ):
            if size % (2 * all_pes):
                raise UsageError(f"{size} {name} of a SIP: not an even number for {all_pes} PEs")
        if cubes % own.kv_heads:
            raise UsageError(
                f"{own.kv_heads} heads of keys and values of a SIP do not divide {cubes} cubes"
            )
        if self.is_decode:
            self._check_context(ranks, all_pes // own.kv_heads)

    def _check_context(self, ranks: int, pes: int) -> None:
        """`pes` PEs share the keys of a head, equally."""
        where = (
            f"--context {self.context}: on {sip_count(ranks)}, {pes} PEs share the keys of a head"
        )
        if self.context % pes:
            raise UsageError(f"{where}, so it must be a multiple of {pes}")
        if self.context // pes > MOST_KEYS:
            raise UsageError(
                f"{where}, and the TCM of one has room for {MOST_KEYS}: at most {pes * MOST_KEYS}"
            )


LLAMA_70B = LayerShape(
    hidden=8192, inner=28672, heads=64, kv_heads=8, depth=128, tokens=1, context=8192
)
"""H. Touvron et al., "Llama 2: Open Foundation and Fine-Tuned Chat Models", 2023: 64 heads of 128
columns, grouped-query attention with 8 heads of keys and values, SwiGLU with 28672 columns.
"""
LAYERS = 80


@dataclass(frozen=True)
class Activations:
    """The layout of (tokens, columns) elements: one panel of `width` columns behind the other.

    A panel is row-major. A PE loads a panel, or some tokens of it, as one block.
    """

    tokens: int
    width: int

    def start(self, token: int, column: int) -> int:
        """The index of an element."""
        panel, rest = divmod(column, self.width)
        return (panel * self.tokens + token) * self.width + rest

    def runs(self, column: int, count: int) -> Iterator[tuple[int, int]]:
        """(first, count) of the columns from `column` on that lie in one panel, each first
        relative to `column`.
        """
        first = 0
        while first < count:
            length = min(count - first, self.width - (column + first) % self.width)
            yield first, length
            first += length
