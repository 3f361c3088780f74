"""Ring attention: the sequence is divided over ranks, the keys and values go round the ring.

A rank keeps its queries. In step t it computes with the keys of the rank t positions before it,
while these keys are already on their way to the next rank, and combines the state (m, l, o) with
that of the step before (H. Liu, M. Zaharia, P. Abbeel, "Ring Attention with Blockwise Transformers
for Near-Infinite Context", 2023). With a causal mask a contiguous division leaves the first ranks
without work; zig-zag, which gives each rank a chunk from both ends, makes all ranks equal.
"""

from dataclasses import dataclass
from typing import NamedTuple

from kernbench import tl
from runtime.device.kernels.attention.flash import BlockShape, FlashItem, flash
from runtime.device.kernels.attention.online_softmax import SoftmaxState, joined, normalise


@dataclass(frozen=True, kw_only=True)
class SequenceParts:
    """`tokens` tokens in chunks of one length, in the memory of each of `ranks` ranks by position.

    Rank r has chunk r of as many chunks as ranks; with `is_zigzag` chunks r and 2 ranks - 1 - r of
    twice as many.
    """

    tokens: int
    ranks: int
    is_causal: bool
    is_zigzag: bool

    @property
    def rank_tokens(self) -> int:
        """Tokens of one rank."""
        return self.tokens // self.ranks

    @property
    def chunk_tokens(self) -> int:
        """Tokens of one chunk."""
        return self.rank_tokens // 2 if self.is_zigzag else self.rank_tokens

    def chunks(self, rank: int) -> tuple[int, ...]:
        """The chunks of a rank, rising."""
        # Query i sees i + 1 keys. Chunks c and 2p - 1 - c together see as many keys on every rank.
        return (rank, 2 * self.ranks - 1 - rank) if self.is_zigzag else (rank,)

    def positions(self, rank: int) -> list[int]:
        """The positions in the sequence of the tokens of a rank."""
        length = self.chunk_tokens
        return [chunk * length + token for chunk in self.chunks(rank) for token in range(length)]

    def scores(self, rank: int) -> int:
        """Pairs of a query of a rank and a key that it sees, over all steps, for one head."""
        if not self.is_causal:
            return self.rank_tokens * self.tokens
        return sum(position + 1 for position in self.positions(rank))


class StepBlock(NamedTuple):
    """Queries of a rank from `first` on, which see the first `keys` keys of the rank of the step.

    With `is_causal` the last query belongs to the last of these keys. No later step has keys for
    the queries if it `is_last`.
    """

    first: int
    keys: int
    is_causal: bool
    is_last: bool


@dataclass(frozen=True)
class RingStep:
    """Step `number` of a rank, with the keys of the rank `number` positions before it."""

    parts: SequenceParts
    rank: int
    number: int

    def blocks(self, rows: int) -> list[StepBlock]:
        """The blocks of `rows` queries that see keys in this step; `rows` divides a chunk."""
        blocks = [
            StepBlock(first, *self._seen(self.number, first, rows), self._is_last(first, rows))
            for first in range(0, self.parts.rank_tokens, rows)
        ]
        return [block for block in blocks if block.keys]

    def _seen(self, number: int, first: int, rows: int) -> tuple[int, bool]:
        """The number of keys, and whether the last of them are masked."""
        parts = self.parts
        if not parts.is_causal:
            return parts.rank_tokens, False
        length = parts.chunk_tokens
        chunk, sources = (
            parts.chunks(self.rank)[first // length],
            parts.chunks((self.rank - number) % parts.ranks),
        )
        # Chunks lie in memory by position: those before the queries are the first ones.
        before = length * sum(source < chunk for source in sources)
        if chunk in sources:
            return before + first % length + rows, True
        return before, False

    def _is_last(self, first: int, rows: int) -> bool:
        later = range(self.number + 1, self.parts.ranks)
        return not any(self._seen(number, first, rows)[0] for number in later)


def ring_step(
    q: tl.Pointer,
    kv: tl.Pointer,
    state: tl.Pointer,
    out: tl.Pointer,
    step: RingStep,
    shape: BlockShape,
) -> None:
    """Kernel: one step of the head of this PE; head h is that of PE h.

    For each head, q and `out` are (tokens of the rank, depth), `kv` is the keys and then the
    values, both alike. `state` has depth + 2 float32 for each token: m, l and o of one block after
    the other. A block with a later step leaves its state there, others their result in `out`.
    """
    rows, _, depth = shape
    tokens, blocks = step.parts.rank_tokens, step.blocks(rows)
    head = tl.program_id(0) * tokens
    keys = kv + 2 * head * depth
    values = keys + tokens * depth
    items = [
        FlashItem(q + (head + block.first) * depth, keys, values, block.keys, block.is_causal)
        for block in blocks
    ]
    carried = [state + (head + block.first) * (depth + 2) for block in blocks]
    earlier = _EarlierStates(carried if step.number else [], shape)
    results = [tl.empty((rows, depth), out.dtype) for _ in range(2)]
    for number, (block, reached) in enumerate(zip(blocks, flash(items, shape), strict=True)):
        if step.number:
            joined(reached, earlier.taken(number), out=reached)
        # The next block is under way while the results are stored.
        if block.is_last:
            result = results[number % 2]
            normalise(reached, result)
            tl.store_async(out + (head + block.first) * depth, result)
        else:
            tl.store_async(carried[number], reached.m)
            tl.store_async(carried[number] + rows, reached.l)
            tl.store_async(carried[number] + 2 * rows, reached.o)


class _EarlierStates:
    """The states of the step before, each loaded while the block before it is computed."""

    def __init__(self, pointers: list[tl.Pointer], shape: BlockShape) -> None:
        self._pointers, self._shape = pointers, shape
        self._loads: dict[int, tl.PendingValue] = {}
        for number in range(min(2, len(pointers))):
            self._load(number, None)

    def taken(self, number: int) -> SoftmaxState:
        """The state of a block, which is valid until the next one is taken."""
        # The state before it has been used: its buffer takes the state that follows.
        if number and number + 1 < len(self._pointers):
            self._load(number + 1, self._loads.pop(number - 1).wait())
        rows, _, depth = self._shape
        value = self._loads[number].wait()
        return SoftmaxState(
            value[:rows, None],
            value[rows : 2 * rows, None],
            value[2 * rows :].reshape(rows, depth),
        )

    def _load(self, number: int, out: tl.Value | None) -> None:
        count = self._shape.rows * (self._shape.depth + 2)
        self._loads[number] = tl.load_async(self._pointers[number], (count,), out=out)
