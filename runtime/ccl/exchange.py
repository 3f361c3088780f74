"""Building blocks of collective kernels: transfers of values along a line or round a ring of PEs.

A pair of directions leads to lower and to higher positions of a line; a ring sends to the higher
one. `index_algebra` has the schedules: which chunk each position sends in which step. A value
without elements takes neither a slot nor time.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from runtime.ccl.index_algebra import (
    line_gather_step,
    line_scatter_step,
    ring_gather_step,
    ring_scatter_step,
)
from runtime.ccl.reduction import ReduceOp
from runtime.ccl.topologies import tree_binary
from runtime.core.dtypes import DType
from runtime.language import tl
from runtime.language.value import Pointer, Value

Directions = tuple[str, str]
"""The directions to lower and to higher positions."""


class Line(NamedTuple):
    """One dimension of a grid of ranks: this rank's position, the length, and whether the ends are
    joined to a ring.
    """

    position: int
    size: int
    wraps: bool


class PrefetchedMessages:
    """The messages from one direction: while the kernel uses one of them, the next one moves from
    the ring to scratch.

    `sizes` are their numbers of elements, in non-increasing order. Two of them fit the scratch
    scope that is open when the object is made.
    """

    def __init__(self, direction: str, sizes: Sequence[int], dtype: DType) -> None:
        self._direction, self._sizes = direction, deque(sizes[2:])
        self._pending = deque(tl.recv_async(direction, size, dtype) for size in sizes[:2])
        self._current: Value | None = None

    def take(self) -> Value:
        """Wait for the next message. It stays valid until the message after it is taken."""
        if self._current is not None and self._sizes:
            # The caller has finished with the current message, and the message after the next one
            # overwrites it. A third buffer would cost scratch, which limits the message size.
            self._pending.append(
                tl.recv_async(self._direction, dst_addr=self._current[: self._sizes.popleft()])
            )
        self._current = received(self._pending.popleft())
        return self._current


def blocks(numel: int, block: int) -> Iterator[tuple[int, int]]:
    """(start, count) of consecutive blocks of at most `block` elements that cover `numel`."""
    return ((start, min(block, numel - start)) for start in range(0, numel, block))


def blocks_from_rest(numel: int, block: int) -> Iterator[tuple[int, int]]:
    """(start, count) of consecutive blocks of at most `block` elements, with the smaller one first.

    Two ranks with different ideas of the number of elements differ in the first message already,
    unless the numbers differ by whole blocks.
    """
    rest = numel % block
    if rest:
        yield 0, rest
    yield from ((start, block) for start in range(rest, numel, block))


def chunk_bounds(numel: int, chunks: int) -> list[tuple[int, int]]:
    """`chunks` consecutive (start, stop) that cover `numel` elements; sizes differ by at most
    one.
    """
    # Both ends of a link compute the bounds from the same two numbers, without a message.
    return [(i * numel // chunks, (i + 1) * numel // chunks) for i in range(chunks)]


def cut(value: Value, chunks: int) -> list[Value]:
    """The chunks of a value as views, which take no time."""
    return [value[start:stop] for start, stop in chunk_bounds(value.numel, chunks)]


def tree_directions(index: int, count: int, prefix: str) -> tuple[str | None, list[str]]:
    """The directions of position `index` of `tree_binary` to its parent (None at the root) and to
    its children.
    """
    directions = [f"{prefix}{direction}" for direction in tree_binary(index, count, 1)]
    return (directions[0], directions[1:]) if index > 0 else (None, directions)


def tree_depth(index: int) -> int:
    """The links from position `index` of `tree_binary` to its root: floor(log2(index + 1))."""
    return (index + 1).bit_length() - 1


def store_chunks(target: Pointer, chunks: Sequence[Value]) -> None:
    """Write chunks to consecutive addresses from `target` on."""
    for chunk in chunks:
        if chunk.numel:
            tl.store(target, chunk)
        target += chunk.numel


def exchange(direction: str, value: Value) -> Value:
    """Send a value and return the value of equal size that arrives from the same direction."""
    # The receive is posted first: arriving slots then move to scratch while the own value is sent.
    incoming = receive_like(direction, value)
    tl.send(direction, value)
    return received(incoming)


def reduce_scatter_along(
    line: Line, value: Value, directions: Directions, op: ReduceOp
) -> tuple[list[Value], int]:
    """Cut a value into one chunk per position; return the chunks and the index of the chunk that is
    combined over all positions.
    """
    # Views: combining a chunk makes a new value and leaves `value` unchanged.
    chunks = cut(value, line.size)
    scatter = ring_reduce_scatter if line.wraps else line_reduce_scatter
    return chunks, scatter(chunks, line.position, directions, op)


def all_gather_along(line: Line, chunks: list[Value], directions: Directions) -> None:
    """Distribute all chunks to all positions of the line, after `reduce_scatter_along`."""
    gather = ring_all_gather if line.wraps else line_all_gather
    gather(chunks, line.position, directions)


def line_reduce_scatter(
    chunks: list[Value], position: int, directions: Directions, op: ReduceOp
) -> int:
    """Combine chunk i of all positions of an open line at position i, in place; return the own
    position.

    Every chunk reaches its position from both ends, combined in the order of the positions. The
    link from position i to i + 1 carries the chunks of all positions above i, the link back the
    others: together they carry the value once.
    """
    size, (lower, higher) = len(chunks), directions
    # All receives are posted before the first send. Chunks may be larger than a ring, and two PEs
    # that both wait for credits of the other before they receive would deadlock.
    rising = (
        [receive_like(lower, chunk) for chunk in reversed(chunks[position:])]
        if position > 0
        else []
    )
    falling = (
        [receive_like(higher, chunk) for chunk in chunks[: position + 1]]
        if position < size - 1
        else []
    )
    for step in range(size):
        upwards, downwards = line_scatter_step(position, step, size)
        if upwards is not None:
            if rising:
                # What rises comes from lower positions, so it is the first operand: operands have
                # the order of the positions.
                arrived = received(rising[step - position])
                chunks[upwards] = op.combine(arrived, chunks[upwards])
            if upwards > position:
                tl.send(higher, chunks[upwards])
        if downwards is not None:
            if falling:
                arrived = received(falling[downwards])
                chunks[downwards] = op.combine(chunks[downwards], arrived)
            if downwards < position:
                tl.send(lower, chunks[downwards])
    return position


def line_all_gather(chunks: list[Value], position: int, directions: Directions) -> None:
    """Pass chunk i from position i to both ends of an open line, until every position has all
    chunks.

    The link from position i to i + 1 carries the chunks of all positions up to i, the link back the
    others: with `line_reduce_scatter`, every link carries the value once.
    """
    size, (lower, higher) = len(chunks), directions
    rising = [receive_like(lower, chunk) for chunk in reversed(chunks[:position])]
    falling = [receive_like(higher, chunk) for chunk in chunks[position + 1 :]]
    for step in range(size):
        below, above = line_gather_step(position, step, size)
        if below is not None:
            if step:
                chunks[below] = received(rising[step - 1])
            if position < size - 1:
                tl.send(higher, chunks[below])
        if above is not None:
            if step:
                chunks[above] = received(falling[step - 1])
            if position > 0:
                tl.send(lower, chunks[above])


def ring_reduce_scatter(
    chunks: list[Value], position: int, directions: Directions, op: ReduceOp
) -> int:
    """Combine one chunk per position of the ring over all positions, in place; return the index of
    the chunk combined here.

    In each of the size - 1 steps every PE sends one chunk and receives one, so each link carries
    (size - 1)/size of the value: no reduce-scatter sends less. A chunk must fit into one receive
    ring, since all PEs send before they receive.
    """
    size = len(chunks)
    for step in range(size - 1):
        sent, incoming = ring_scatter_step(position, step, size)
        arrived = _shift(chunks[sent], chunks[incoming], directions)
        if arrived.numel:
            chunks[incoming] = op.combine(chunks[incoming], arrived)
    return (position + 1) % size


def ring_all_gather(chunks: list[Value], position: int, directions: Directions) -> None:
    """Pass round the chunks that `ring_reduce_scatter` has combined, until every position has all
    of them.

    Each link carries (size - 1)/size of the value, in size - 1 steps. A chunk must fit into one
    receive ring.
    """
    size = len(chunks)
    for step in range(size - 1):
        sent, incoming = ring_gather_step(position, step, size)
        chunks[incoming] = _shift(chunks[sent], chunks[incoming], directions)


def receive_like(direction: str, like: Value) -> tl.PendingResult:
    """Post a receive of a value with the shape and type of another one."""
    return tl.recv_async(direction, like.shape, like.dtype)


def received(incoming: tl.PendingResult) -> Value:
    """Wait for a posted receive and return its value."""
    value = tl.wait(incoming)
    assert value is not None
    return value


def reduce_to(
    value: Value, position: int, root: int, size: int, directions: Directions, op: ReduceOp
) -> Value:
    """Combine along an open line of `size` PEs towards position `root`.

    The result is complete at `root`; elsewhere it is the partial result that was passed on.
    """
    lower, higher = directions
    # Positions below the root receive from below and send upwards, those above the reverse; the
    # root receives from both sides.
    if position <= root and position > 0:
        value = op.combine(value, tl.recv(lower, value.shape, value.dtype))
    if position >= root and position < size - 1:
        value = op.combine(value, tl.recv(higher, value.shape, value.dtype))
    if position != root:
        tl.send(higher if position < root else lower, value)
    return value


def broadcast_from(
    value: Value, position: int, root: int, size: int, directions: Directions
) -> Value:
    """Pass the value at position `root` along an open line of `size` PEs to both ends."""
    lower, higher = directions
    if position != root:
        value = tl.recv(higher if position < root else lower, value.shape, value.dtype)
    if position <= root and position > 0:
        tl.send(lower, value)
    if position >= root and position < size - 1:
        tl.send(higher, value)
    return value


def _shift(outgoing: Value, like: Value, directions: Directions) -> Value:
    """Send one chunk to the next position and return the chunk of the previous position, of the
    size of `like`.
    """
    previous, following = directions
    # Neither side exchanges a slot for an empty chunk: both compute the same chunk sizes.
    if outgoing.numel:
        tl.send(following, outgoing)
    return tl.recv(previous, like.shape, like.dtype) if like.numel else like
