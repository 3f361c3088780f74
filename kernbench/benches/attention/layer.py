"""One attention layer on a SIP: its sizes, and the blocks of queries that each PE computes."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, kw_only=True)
class AttentionLayer:
    """`heads` query heads in groups, of which each uses one of `kv_heads` heads of keys and values.

    A *sequence* is the keys of one KV head for one of `batch` users, `tokens` of them: number
    `kv_head * batch + user`. All tensors are row-major, rows of `depth` elements: k and v
    (sequence, token), q and the result (sequence, head of the group, token), in a decode (sequence,
    head of the group).
    """

    heads: int
    kv_heads: int
    depth: int
    batch: int
    tokens: int

    @property
    def group(self) -> int:
        """The query heads which share a KV head."""
        return self.heads // self.kv_heads

    @property
    def sequences(self) -> int:
        """The sequences of all users and KV heads."""
        return self.kv_heads * self.batch

    def of_rank(self, ranks: int) -> "AttentionLayer":
        """The part of one of `ranks` ranks: whole KV heads, with their groups."""
        return AttentionLayer(
            heads=self.heads // ranks,
            kv_heads=self.kv_heads // ranks,
            depth=self.depth,
            batch=self.batch,
            tokens=self.tokens,
        )


LLAMA_70B = AttentionLayer(heads=64, kv_heads=8, depth=128, batch=1, tokens=4096)
"""H. Touvron et al., "Llama 2: Open Foundation and Fine-Tuned Chat Models", 2023, table 1 and
section 2.2: 64 heads of 128 columns, grouped-query attention with 8 KV heads, 4096 tokens.
"""


class PeGrid(NamedTuple):
    """`cubes` cubes of `pes` PEs each; PEs are numbered cube by cube."""

    cubes: int
    pes: int

    @property
    def size(self) -> int:
        """All PEs."""
        return self.cubes * self.pes


class QueryBlock(NamedTuple):
    """A block of queries of one head of the group of a sequence."""

    sequence: int
    head: int
    block: int


def dealt(layer: AttentionLayer, rows: int, grid: PeGrid, cube: int, pe: int) -> list[QueryBlock]:
    """The blocks of `rows` queries which a PE computes in a causal prefill.

    Every cube holds all keys, and each PE of it an equal part of them. A PE computes for the
    sequences of its own part, as far as there are as many sequences as PEs. Blocks cost as much as
    they have keys before them: they are dealt from the last block to the first, to the PEs in turn
    and back. `ValueError` if neither number divides the other.
    """
    fewer, more = sorted((grid.pes, layer.sequences))
    if more % fewer:
        raise ValueError(
            f"{layer.sequences} sequences and {grid.pes} PEs of a cube: one must divide the other"
        )
    sharing = max(1, grid.pes // layer.sequences)
    worker, workers = cube * sharing + pe % sharing, grid.cubes * sharing
    blocks = [
        QueryBlock(sequence, head, block)
        for block in reversed(range(layer.tokens // rows))
        for sequence in _own_sequences(layer, grid, pe)
        for head in range(layer.group)
    ]
    return [
        each for number, each in enumerate(blocks) if worker == _there_and_back(number, workers)
    ]


def _own_sequences(layer: AttentionLayer, grid: PeGrid, pe: int) -> range:
    """The sequences whose keys lie on a PE of a cube."""
    first = pe * layer.sequences // grid.pes
    return range(first, max(first + 1, (pe + 1) * layer.sequences // grid.pes))


def _there_and_back(number: int, workers: int) -> int:
    turn, place = divmod(number, workers)
    return workers - 1 - place if turn % 2 else place
