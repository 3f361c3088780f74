"""Building blocks of all-reduce kernels: one value per participant in, the sum of all values out, along one line of PEs."""

from runtime.language import tl
from runtime.language.value import Value


def chunk_bounds(numel: int, chunks: int) -> list[tuple[int, int]]:
    """`chunks` consecutive (start, stop) that cover `numel` elements; sizes differ by at most one."""
    return [(i * numel // chunks, (i + 1) * numel // chunks) for i in range(chunks)]


def ring_all_reduce(value: Value, rank: int, size: int, ahead: str, behind: str) -> list[Value]:
    """All-reduce (sum) round a ring: reduce-scatter, then all-gather. Returns the chunks of the result in order.

    In each of the 2(size-1) steps every PE sends one chunk of 1/size of the value `ahead` and receives one from `behind`, so
    each link carries 2(size-1)/size of the value: the bandwidth-optimal bound. A chunk must fit into one receive ring,
    since all PEs send before they receive.
    """
    chunks = [value[start:stop] for start, stop in chunk_bounds(value.numel, size)]

    def step(outgoing: int, incoming: int) -> Value | None:
        if chunks[outgoing].numel:
            tl.send(ahead, chunks[outgoing])
        if not chunks[incoming].numel:
            return None
        return tl.recv(behind, chunks[incoming].shape, value.dtype)

    for i in range(size - 1):
        incoming = (rank - i - 1) % size
        received = step((rank - i) % size, incoming)
        if received is not None:
            chunks[incoming] = chunks[incoming] + received
    for i in range(size - 1):
        incoming = (rank - i) % size
        received = step((rank - i + 1) % size, incoming)
        if received is not None:
            chunks[incoming] = received
    return chunks


def reduce_to(value: Value, position: int, root: int, size: int, ways: tuple[str, str]) -> Value:
    """Sum along an open line of `size` PEs towards the one at `root`; `ways` are the directions to lower and higher positions.

    The result is whole at `root`; elsewhere it is the partial sum that was passed on.
    """
    lower, higher = ways
    if position <= root and position > 0:
        value = value + tl.recv(lower, value.shape, value.dtype)
    if position >= root and position < size - 1:
        value = value + tl.recv(higher, value.shape, value.dtype)
    if position != root:
        tl.send(higher if position < root else lower, value)
    return value


def broadcast_from(value: Value, position: int, root: int, size: int, ways: tuple[str, str]) -> Value:
    """Pass the value at `root` along an open line of `size` PEs to both ends."""
    lower, higher = ways
    if position != root:
        value = tl.recv(higher if position < root else lower, value.shape, value.dtype)
    if position <= root and position > 0:
        tl.send(lower, value)
    if position >= root and position < size - 1:
        tl.send(higher, value)
    return value
