"""The sizes of a decoder layer, of the part of a rank, and of a product on the PEs of a SIP."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

ITEM_BYTES = 2
"""Bytes of an element of a weight or an activation."""
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
        if self.tokens == 1:
            # Without a division: command lists of a decode serve all cubes.
            return column
        panel, rest = divmod(column, self.width)
        return (panel * self.tokens + token) * self.width + rest

    def runs(self, column: int, count: int) -> Iterator[tuple[int, int]]:
        """(first, count) of the columns from `column` on that lie in one panel, each first
        relative to `column`.
        """
        if not self.width % count and not column % count:
            yield 0, count
            return
        first = 0
        while first < count:
            length = min(count - first, self.width - (column + first) % self.width)
            yield first, length
            first += length


PANEL = 32
"""Columns of a panel of a weight: those of a tile of the GEMM engine."""
CHUNK = 256
"""Most columns of a cube whose sums are exchanged at once."""
MOST_OPERAND_BYTES = 512 << 10
"""Bytes of TCM for an operand."""


@dataclass(frozen=True, kw_only=True)
class Projection:
    """A product (tokens, depth) x (depth, columns) on all PEs of a SIP.

    Cube c has the columns [c * n, c * n + n), n = columns / cubes; PE p of it has the rows [p * k,
    p * k + k), k = depth / pes. So a PE reads its own part of the weight once, and the PEs of a
    cube add up their products. The result has panels of `out_width` columns.
    """

    tokens: int
    depth: int
    columns: int
    out_width: int
    cubes: int
    pes: int

    @property
    def x(self) -> Activations:
        """The layout of the operand: a panel for each PE of a cube."""
        return Activations(self.tokens, self.k)

    @property
    def out(self) -> Activations:
        """The layout of the result."""
        return Activations(self.tokens, self.out_width)

    @cached_property
    def k(self) -> int:
        """Rows of the weight on one PE."""
        return self.depth // self.pes

    @cached_property
    def n(self) -> int:
        """Columns of the weight on one PE."""
        return self.columns // self.cubes

    @cached_property
    def block(self) -> int:
        """Tokens that are multiplied at once."""
        return min(self.tokens, TOKENS)

    @cached_property
    def chunk(self) -> int:
        """Columns whose sums are exchanged at once."""
        limit = self.n if self.block == 1 else CHUNK
        return max(
            each
            for each in range(1, min(self.n, limit) + 1)
            if not self.n % each and (each == self.n or not each % PANEL)
        )

    @cached_property
    def operands(self) -> int:
        """Blocks of tokens of the operand in TCM: two, if they leave half of it to the rest."""
        fit = 2 * self.block * self.k * ITEM_BYTES <= MOST_OPERAND_BYTES
        return 2 if self.tokens > self.block and fit else 1

    @cached_property
    def operand_bytes(self) -> int:
        """Bytes of TCM for the operand."""
        return self.operands * self.block * self.k * ITEM_BYTES

    @cached_property
    def sums_bytes(self) -> int:
        """Bytes of TCM for the sums, in float32, of up to two steps."""
        return min(2, self.steps) * self.block * self.chunk * 4

    @cached_property
    def chunks(self) -> range:
        """The first columns of the chunks of a cube."""
        return range(0, self.n, self.chunk)

    @cached_property
    def steps(self) -> int:
        """Blocks of tokens times chunks."""
        return self.tokens // self.block * len(self.chunks)

    @cached_property
    def width(self) -> int:
        """Columns of a panel."""
        return self.chunk if self.chunk % PANEL else PANEL

    @cached_property
    def panels(self) -> range:
        """The panels of a chunk, by their numbers."""
        return range(self.chunk // self.width)

    @property
    def has_all_rows(self) -> bool:
        """Whether a PE adds up some columns of all rows, else all columns of some rows."""
        return self.block < self.pes

    def first(self, token: int, column: int, cube: int, pe: int) -> tuple[int, int]:
        """First token and column of a PE's part of the step from `token` and `column` of its cube
        on.
        """
        _, rows, columns = self.part
        column += cube * self.n
        if self.has_all_rows:
            return token, column + pe * columns
        return token + pe * rows, column

    @cached_property
    def part(self) -> tuple[int, int, int]:
        """Panels, tokens and columns of a panel of the sums that one PE adds up: some tokens of all
        panels, or some columns of one token.
        """
        if self.has_all_rows:
            return 1, self.block, self.chunk // self.pes
        return len(self.panels), self.block // self.pes, self.width

    @cached_property
    def exchanged(self) -> int:
        """Elements of the buffers of a SIP through which PEs exchange sums: two steps in flight."""
        return self.cubes * self.pes * 2 * self.slots

    @cached_property
    def slots(self) -> int:
        """Elements that a PE receives in one step: for each PE sums of squares, and its part."""
        panels, rows, columns = self.part
        return self.pes * rows * (panels * columns + 1)
