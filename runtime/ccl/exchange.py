"""Building blocks of collective kernels: what the PEs along one line or round one ring do with a value each.

`ways` are the directions to lower and higher positions of the line; a ring sends to the higher one.
"""

from collections.abc import Iterator

from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Value

Ways = tuple[str, str]


def blocks(numel: int, block: int) -> Iterator[tuple[int, int]]:
    """(start, count) of consecutive blocks of at most `block` elements that cover `numel`."""
    return ((start, min(block, numel - start)) for start in range(0, numel, block))


def chunk_bounds(numel: int, chunks: int) -> list[tuple[int, int]]:
    """`chunks` consecutive (start, stop) that cover `numel` elements; sizes differ by at most one."""
    return [(i * numel // chunks, (i + 1) * numel // chunks) for i in range(chunks)]


def cut(value: Value, chunks: int) -> list[Value]:
    """The chunks of a value, views that cost nothing."""
    return [value[start:stop] for start, stop in chunk_bounds(value.numel, chunks)]


def ring_reduce_scatter(chunks: list[Value], position: int, ways: Ways, op: ReduceOp) -> int:
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


def ring_all_gather(chunks: list[Value], position: int, ways: Ways) -> None:
    """Pass round the chunks that `ring_reduce_scatter` left whole, until every PE has all of them.

    Each link carries (size-1)/size of the value, in size - 1 steps, and a chunk must fit into one receive ring.
    """
    size, (behind, ahead) = len(chunks), ways
    for step in range(size - 1):
        incoming = (position - step) % size
        chunks[incoming] = _shift(chunks[(position - step + 1) % size], chunks[incoming], behind, ahead)


def received(incoming: tl.Pending) -> Value:
    """The value that `tl.recv_async` asked for."""
    value = tl.wait(incoming)
    assert value is not None
    return value


def _shift(outgoing: Value, like: Value, behind: str, ahead: str) -> Value:
    """Send one chunk ahead and return the one from behind, of the size of `like`. Nothing moves for one without elements."""
    if outgoing.numel:
        tl.send(ahead, outgoing)
    return tl.recv(behind, like.shape, like.dtype) if like.numel else like


def reduce_to(value: Value, position: int, root: int, size: int, ways: Ways, op: ReduceOp) -> Value:
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


def broadcast_from(value: Value, position: int, root: int, size: int, ways: Ways) -> Value:
    """Pass the value at `root` along an open line of `size` PEs to both ends."""
    lower, higher = ways
    if position != root:
        value = tl.recv(higher if position < root else lower, value.shape, value.dtype)
    if position <= root and position > 0:
        tl.send(lower, value)
    if position >= root and position < size - 1:
        tl.send(higher, value)
    return value
