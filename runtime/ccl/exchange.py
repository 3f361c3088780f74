"""Building blocks of collective kernels: what the PEs along one line or round one ring do with a value each.

`ways` are the directions to lower and higher positions of the line; a ring sends to the higher one. A value without elements
takes no slot and no time.
"""

from collections import deque
from collections.abc import Iterator, Sequence

from runtime.ccl.reduction import ReduceOp
from runtime.ccl.topologies import tree_binary
from runtime.core.dtypes import DType
from runtime.language import tl
from runtime.language.value import Pointer, Value

Directions = tuple[str, str]

Line = tuple[int, int, bool]
"""One dimension of a grid of ranks: position, length, whether its ends are joined."""


class PrefetchedMessages:
    """The messages of one direction: while one of them is used, the next one moves from the ring to scratch.

    `sizes` are their numbers of elements, no larger one behind a smaller one. Two of them have a place in the scratch that is
    open where the stream is made.
    """

    def __init__(self, way: str, sizes: Sequence[int], dtype: DType) -> None:
        self._way, self._sizes = way, deque(sizes[2:])
        self._asked = deque(tl.recv_async(way, size, dtype) for size in sizes[:2])
        self._taken: Value | None = None

    def take(self) -> Value:
        """Wait for the next message. It stays until the one after it is taken."""
        if self._taken is not None and self._sizes:
            self._asked.append(
                tl.recv_async(self._way, dst_addr=self._taken[: self._sizes.popleft()])
            )
        self._taken = received(self._asked.popleft())
        return self._taken


def blocks(numel: int, block: int) -> Iterator[tuple[int, int]]:
    """(start, count) of consecutive blocks of at most `block` elements that cover `numel`."""
    return ((start, min(block, numel - start)) for start in range(0, numel, block))


def chunk_bounds(numel: int, chunks: int) -> list[tuple[int, int]]:
    """`chunks` consecutive (start, stop) that cover `numel` elements; sizes differ by at most one."""
    return [(i * numel // chunks, (i + 1) * numel // chunks) for i in range(chunks)]


def cut(value: Value, chunks: int) -> list[Value]:
    """The chunks of a value, views that cost nothing."""
    return [value[start:stop] for start, stop in chunk_bounds(value.numel, chunks)]


def tree_directions(index: int, count: int, prefix: str) -> tuple[str | None, list[str]]:
    """The directions of one of `count` PEs in `tree_binary` to its parent, None for the root, and to its children."""
    ways = [f"{prefix}{way}" for way in tree_binary(index, count, 1)]
    return (ways[0], ways[1:]) if index > 0 else (None, ways)


def store_chunks(target: Pointer, chunks: Sequence[Value]) -> None:
    """Put chunks behind each other at `target`."""
    for chunk in chunks:
        if chunk.numel:
            tl.store(target, chunk)
        target += chunk.numel


def exchange(way: str, value: Value) -> Value:
    """Send a value and return the one of its size that comes from the same side."""
    # Asked for first, what comes moves from the ring to scratch while the own value is sent.
    incoming = receive_like(way, value)
    tl.send(way, value)
    return received(incoming)


def reduce_scatter_along(
    line: Line, value: Value, ways: Directions, op: ReduceOp
) -> tuple[list[Value], int]:
    """Cut a value into a chunk for each PE of the line; the one whose index is returned is combined over all of them."""
    position, size, joined = line
    chunks = cut(value, size)
    scatter = ring_reduce_scatter if joined else line_reduce_scatter
    return chunks, scatter(chunks, position, ways, op)


def all_gather_along(line: Line, chunks: list[Value], ways: Directions) -> None:
    """Give all chunks to all PEs of the line after `reduce_scatter_along`."""
    position, _, joined = line
    gather = ring_all_gather if joined else line_all_gather
    gather(chunks, position, ways)


def line_reduce_scatter(chunks: list[Value], position: int, ways: Directions, op: ReduceOp) -> int:
    """Combine one chunk per PE of the open line over all PEs, in place; returns which one is whole here: the own position's.

    Every chunk comes to its PE from both ends, combined on the way in the order of the positions. The link from position i to
    i + 1 carries the chunks of all positions above i, the link back the others: both together the value once.
    """
    size, (lower, higher) = len(chunks), ways
    # All that comes has its place before anything is sent: chunks may be larger than a ring, and no two PEs block each other.
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
        # The chunk with the longest way goes first, and takes a step from position to position: what is due from the far end is
        # not waited for before what the near end has.
        risen, fallen = step - position, step - (size - 1 - position)
        if risen >= 0:
            top = size - 1 - risen
            if rising:
                chunks[top] = op.combine(received(rising[risen]), chunks[top])
            if top > position:
                tl.send(higher, chunks[top])
        if fallen >= 0:
            if falling:
                chunks[fallen] = op.combine(chunks[fallen], received(falling[fallen]))
            if fallen < position:
                tl.send(lower, chunks[fallen])
    return position


def line_all_gather(chunks: list[Value], position: int, ways: Directions) -> None:
    """Pass the chunks that `line_reduce_scatter` left whole to both ends, until every PE has all of them.

    The link from position i to i + 1 carries the chunks of all positions up to i, the link back the others: with
    `line_reduce_scatter` every link carries the value once.
    """
    size, (lower, higher) = len(chunks), ways
    rising = [receive_like(lower, chunk) for chunk in reversed(chunks[:position])]
    falling = [receive_like(higher, chunk) for chunk in chunks[position + 1 :]]
    for distance in range(size):
        below, above = position - distance, position + distance
        if below >= 0:
            if distance:
                chunks[below] = received(rising[distance - 1])
            if position < size - 1:
                tl.send(higher, chunks[below])
        if above < size:
            if distance:
                chunks[above] = received(falling[distance - 1])
            if position > 0:
                tl.send(lower, chunks[above])


def ring_reduce_scatter(chunks: list[Value], position: int, ways: Directions, op: ReduceOp) -> int:
    """Combine one chunk per PE of the ring over all PEs, in place; returns which one is whole here: the next position's.

    In each of the len(chunks) - 1 steps every PE sends one chunk and receives one, so each link carries (size-1)/size of the
    value: no reduce-scatter sends less. A chunk must fit into one receive ring, since all PEs send before they receive.
    """
    size, (behind, ahead) = len(chunks), ways
    for step in range(size - 1):
        incoming = (position - step - 1) % size
        received = _shift(chunks[(position - step) % size], chunks[incoming], behind, ahead)
        if received.numel:
            chunks[incoming] = op.combine(chunks[incoming], received)
    return (position + 1) % size


def ring_all_gather(chunks: list[Value], position: int, ways: Directions) -> None:
    """Pass round the chunks that `ring_reduce_scatter` left whole, until every PE has all of them.

    Each link carries (size-1)/size of the value, in size - 1 steps, and a chunk must fit into one receive ring.
    """
    size, (behind, ahead) = len(chunks), ways
    for step in range(size - 1):
        incoming = (position - step) % size
        chunks[incoming] = _shift(
            chunks[(position - step + 1) % size], chunks[incoming], behind, ahead
        )


def receive_like(way: str, like: Value) -> tl.PendingResult:
    """Ask for a value of the shape and type of another one."""
    return tl.recv_async(way, like.shape, like.dtype)


def received(incoming: tl.PendingResult) -> Value:
    """The value that `tl.recv_async` receive_like for."""
    value = tl.wait(incoming)
    assert value is not None
    return value


def _shift(outgoing: Value, like: Value, behind: str, ahead: str) -> Value:
    """Send one chunk ahead and return the one from behind, of the size of `like`. Nothing moves for one without elements."""
    if outgoing.numel:
        tl.send(ahead, outgoing)
    return tl.recv(behind, like.shape, like.dtype) if like.numel else like


def reduce_to(
    value: Value, position: int, root: int, size: int, ways: Directions, op: ReduceOp
) -> Value:
    """Combine along an open line of `size` PEs towards the one at `root`.

    The result is whole at `root`; elsewhere it is what was passed on.
    """
    lower, higher = ways
    if position <= root and position > 0:
        value = op.combine(value, tl.recv(lower, value.shape, value.dtype))
    if position >= root and position < size - 1:
        value = op.combine(value, tl.recv(higher, value.shape, value.dtype))
    if position != root:
        tl.send(higher if position < root else lower, value)
    return value


def broadcast_from(value: Value, position: int, root: int, size: int, ways: Directions) -> Value:
    """Pass the value at `root` along an open line of `size` PEs to both ends."""
    lower, higher = ways
    if position != root:
        value = tl.recv(higher if position < root else lower, value.shape, value.dtype)
    if position <= root and position > 0:
        tl.send(lower, value)
    if position >= root and position < size - 1:
        tl.send(higher, value)
    return value
