"""All-reduce by recursive halving and doubling (Rabenseifner's algorithm) over a hypercube of
ranks.

Recursive halving is a reduce-scatter: in each step two ranks exchange half of what they have, and
each keeps the half to which both have contributed. Recursive doubling is the all-gather that
follows, with the dimensions in reverse order. The schedules are `halving_steps` and
`doubling_steps` of `index_algebra`. Large halves go to near ranks.

Blocks overlap (`runtime.ccl.pipelines.overlap`): each is in another step, so the links of all
dimensions work at once. A block is combined where it was loaded. What arrives in the last two
steps, most of the bytes, is stored and sent on from the slots of its ring; what arrives before is
copied to the block.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from runtime.ccl.exchange import blocks, chunk_bounds, received
from runtime.ccl.group import Group
from runtime.ccl.hypercube import FOLD, HypercubeRank
from runtime.ccl.index_algebra import Chunks, doubling_steps, halved_chunk, halving_steps
from runtime.ccl.pipelines.overlap import FLIGHT, Block, flight, overlapped
from runtime.ccl.reduction import ReduceOp
from runtime.core.dtypes import DType
from runtime.language import tl
from runtime.language.value import Pointer, Value

BLOCK_BYTES = 16 << 10
"""The most bytes of a block: the links need more time for them than for the commands of a turn."""
KEPT_BITS = 2
"""The last bits of the all-gather, over which messages may stay in their slots."""


class Exchange(NamedTuple):
    """A rank of the hypercube, and whether messages may stay in their slots until they are used."""

    corner: HypercubeRank
    in_place: bool


def arguments(group: Group, itemsize: int) -> tuple[Exchange, int]:
    """(rank in the exchange, elements of a block): half a ring holds a block, and the scratch all
    blocks in work, each with room for a message.
    """
    corner = HypercubeRank(group.rank, group.world_size)
    ring_bytes = group.algorithm.ring_bytes // 2 // 64 * 64
    within = group.ring_bytes_within_scratch(2 * _depth(corner))
    nbytes = max(min(within, ring_bytes, BLOCK_BYTES), 64)
    slots = _slots_in_use(corner, nbytes, group.algorithm.slot_size)
    return Exchange(corner, slots <= group.algorithm.n_slots), nbytes // itemsize


def all_reduce(shard: Pointer, numel: int, op: ReduceOp, exchange: Exchange, block: int) -> None:
    """Kernel: replace the `numel` elements at `shard` by the combined elements of all ranks.

    With P = 2^floor(log2 p), each of the first P ranks sends 2(P-1)/P n bytes in 2 log2 P steps.
    Each of the other p - P ranks sends its n bytes to the rank P below it before these steps, and
    receives the result from it after them (R. Thakur, R. Rabenseifner, W. Gropp, Optimization of
    Collective Communication Operations in MPICH, 2005).
    """
    corner = exchange.corner
    if corner.size == 1:
        return
    spans = list(blocks(numel, block))
    depth, largest = min(len(spans), _depth(corner)), min(block, numel)
    with tl.scratch():
        buffers = [BlockBuffers.of(corner, largest, shard.dtype) for _ in range(depth)]
        work = (
            _BlockAtWork(
                corner=corner,
                shard=shard + start,
                numel=count,
                op=op,
                buffers=buffers[number % depth],
                in_place=exchange.in_place,
            ).stages()
            for number, (start, count) in enumerate(spans)
        )
        overlapped(work, depth)


class BlockBuffers(NamedTuple):
    """Scratch of a block: its elements, and an arriving part of them."""

    own: Value
    arriving: Value

    @classmethod
    def of(cls, corner: HypercubeRank, elements: int, dtype: DType) -> "BlockBuffers":
        """Buffers for blocks of up to `elements` elements."""
        part = elements if corner.folded is not None else -(-elements // 2)
        return cls(tl.empty(elements, dtype), tl.empty(part, dtype))


class _BlockAtWork:
    """A block of a rank: `numel` elements at `shard`, in one chunk for each corner."""

    def __init__(
        self,
        *,
        corner: HypercubeRank,
        shard: Pointer,
        numel: int,
        op: ReduceOp,
        buffers: BlockBuffers,
        in_place: bool,
    ) -> None:
        self._corner, self._shard, self._op, self._in_place = corner, shard, op, in_place
        self._block, self._arriving = buffers.own[:numel], buffers.arriving
        self._edges = [start for start, _ in chunk_bounds(numel, corner.corners)] + [numel]
        self._users, self._kept = list[tl.PendingResult](), list[Value]()
        self._gathered = list[Value]()

    def stages(self) -> Block:
        """The stages of the block, equally many on all ranks."""
        load = tl.load_async(self._shard, self._block.numel, out=self._block)
        yield from flight()
        load.wait()
        if self._corner.is_corner:
            yield from self._inside()
        else:
            yield from self._outside()
        yield
        for each in self._users:
            each.wait()
        for each in self._kept:
            tl.release(each)

    def _inside(self) -> Block:
        """A corner; in a group with ranks outside, with a fold in front and behind."""
        corner, whole = self._corner, (0, self._corner.corners)
        if corner.folded is not None:
            incoming = self._receive(FOLD, whole, self._arriving)
            yield from flight()
            self._combine(whole, incoming, comes_first=False)
        elif corner.has_folds:
            yield from flight()
        yield from self._halve()
        # Divided (AVG) before the all-gather: each rank divides its own chunk only.
        own = halved_chunk(corner.rank, corner.corners)
        value = self._part((own, own + 1))
        self._op.finish(value, corner.size, out=value)
        yield from self._double()
        if corner.folded is not None:
            self._send(FOLD, self._gathered)
        if corner.has_folds:
            yield from flight()

    def _outside(self) -> Block:
        """A rank outside the hypercube, which folds onto its corner."""
        self._send(FOLD, [self._block])
        for _ in range(2 * len(self._corner.bits) + 1):
            yield from flight()
        *_, (_, own, others) = _gather_steps(self._corner)
        incoming = [(chunks, self._receive(FOLD, chunks)) for chunks in (*own, *others)]
        yield from flight()
        for chunks, each in incoming:
            self._keep(chunks, each)

    def _halve(self) -> Block:
        """The steps of the reduce-scatter."""
        for bit, kept, sent in halving_steps(self._corner.rank, self._corner.corners):
            direction = f"global_bit_{bit}"
            incoming = self._receive(direction, kept, self._arriving)
            self._send(direction, [self._part(sent)])
            yield from flight()
            # The lower rank's operand comes first, as in recursive doubling: the bits of a result
            # can depend on the order of the operands.
            self._combine(kept, incoming, comes_first=kept > sent)

    def _double(self) -> Block:
        """The steps of the all-gather."""
        for bit, sent, arriving in _gather_steps(self._corner):
            direction, stays = f"global_bit_{bit}", bit < KEPT_BITS
            if len(sent) == 1:
                self._gathered = [self._part(*sent)]
                if stays:
                    self._store(sent[0], self._gathered[0])
            incoming = [self._receive(direction, each, in_place=stays) for each in arriving]
            self._send(direction, self._gathered)
            yield from flight()
            for chunks, each in zip(arriving, incoming, strict=True):
                if stays:
                    self._gathered.append(self._keep(chunks, each))
                else:
                    each.wait()

    def _part(self, chunks: Chunks) -> Value:
        """A range of chunks of the block."""
        first, stop = chunks
        return self._block[self._edges[first] : self._edges[stop]]

    def _receive(
        self,
        direction: str,
        chunks: Chunks,
        buffer: Value | None = None,
        *,
        in_place: bool = True,
    ) -> tl.PendingResult:
        """Receive a range of chunks in place, or over a buffer: by default where they belong."""
        own = self._part(chunks)
        target = own if buffer is None else buffer[: own.numel]
        return tl.recv_async(direction, dst_addr=target, in_place=in_place and self._in_place)

    def _send(self, direction: str, values: Sequence[Value]) -> None:
        self._users += [tl.send_async(direction, value) for value in values]

    def _store(self, chunks: Chunks, value: Value) -> None:
        if value.numel:
            self._users.append(tl.store_async(self._shard + self._edges[chunks[0]], value))

    def _combine(self, chunks: Chunks, incoming: tl.PendingResult, *, comes_first: bool) -> None:
        """Combine an own range of chunks with that of another rank, which is released."""
        own, other = self._part(chunks), received(incoming)
        operands = (other, own) if comes_first else (own, other)
        self._op.combine(*operands, out=own)
        if self._in_place:
            tl.release(other)

    def _keep(self, chunks: Chunks, incoming: tl.PendingResult) -> Value:
        """Store an arrived range of chunks; its slots are released at the end."""
        value = received(incoming)
        self._store(chunks, value)
        if self._in_place:
            self._kept.append(value)
        return value


def _depth(corner: HypercubeRank) -> int:
    """The turns of a block: flights of the load, of the steps and of the folds, and the end."""
    return FLIGHT * (1 + 2 * len(corner.bits) + 2 * corner.has_folds) + 2


def _gather_steps(corner: HypercubeRank) -> Iterator[tuple[int, list[Chunks], list[Chunks]]]:
    """(bit, messages sent, messages received) of each step of the all-gather of a corner.

    What arrives over the last `KEPT_BITS` bits stays in its slots, apart from what is sent on with
    it; what has arrived before lies beside it in the block.
    """
    pieces = list[Chunks]()
    for bit, sent, arriving in doubling_steps(corner.corner, corner.corners):
        if bit >= KEPT_BITS - 1 or not pieces:
            pieces = [sent]
        distance = arriving[0] - sent[0]
        others = [(first + distance, stop + distance) for first, stop in pieces]
        yield bit, pieces, others
        pieces = pieces + others


def _slots_in_use(corner: HypercubeRank, nbytes: int, slot_bytes: int) -> int:
    """The slots of a ring that let no message of a turn wait for a later turn, at the most.

    Of a message that is used in turn t, the slots are released in turn t + `held`. By the end of
    turn t, the ring holds the messages of the all-gather of turns t - held to t, and those of the
    reduce-scatter behind the first one of them.
    """
    edges = [start for start, _ in chunk_bounds(nbytes, corner.corners)] + [nbytes]

    def slots(pieces: Sequence[Chunks]) -> int:
        return sum(-(-(edges[stop] - edges[first]) // slot_bytes) for first, stop in pieces)

    most = 0
    halves = {bit: -(-(nbytes >> bit + 1) // slot_bytes) for bit in corner.bits}
    for bit, _, arriving in _gather_steps(corner):
        if bit < KEPT_BITS:
            held = 1 + FLIGHT * (bit + corner.has_folds)
            most = max(most, (held + 1) * slots(arriving) + held * halves[bit])
    return most
