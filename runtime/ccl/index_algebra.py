"""The index algebra of the collectives: which rank sends which chunk to which rank, at which step.

A block of elements is cut into one chunk per rank. The functions here are pure: they compute the
indices for one position (a rank, or a PE on a line) and one step, and the kernels send and receive
accordingly. The examples print the whole schedule for four ranks, a line per step: `0 -1-> 2` reads
"rank 0 sends chunk 1 to rank 2", and `0 -(1, 3)-> 2` the same of the chunks from 1 up to 3.
"""

from collections.abc import Iterator

Chunks = tuple[int, int]
"""A range of consecutive chunks: (first, stop)."""


def ring_scatter_step(position: int, step: int, size: int) -> tuple[int, int]:
    """(chunk sent, chunk received) in a step of a ring reduce-scatter.

    Every position sends to the next one and receives from the previous one. A received chunk is
    combined with the own one and sent in the next step. After size - 1 steps, position i has
    combined all contributions to chunk i + 1.

    >>> for step in range(3):
    ...     sent = [ring_scatter_step(rank, step, 4)[0] for rank in range(4)]
    ...     print(*(f"{rank} -{sent[rank]}-> {(rank + 1) % 4}" for rank in range(4)), sep="   ")
    0 -0-> 1   1 -1-> 2   2 -2-> 3   3 -3-> 0
    0 -3-> 1   1 -0-> 2   2 -1-> 3   3 -2-> 0
    0 -2-> 1   1 -3-> 2   2 -0-> 3   3 -1-> 0
    """
    return (position - step) % size, (position - step - 1) % size


def ring_gather_step(position: int, step: int, size: int) -> tuple[int, int]:
    """(chunk sent, chunk received) in a step of a ring all-gather.

    It follows `ring_scatter_step`: position i begins with chunk i + 1 and passes on what it has
    received.

    >>> for step in range(3):
    ...     sent = [ring_gather_step(rank, step, 4)[0] for rank in range(4)]
    ...     print(*(f"{rank} -{sent[rank]}-> {(rank + 1) % 4}" for rank in range(4)), sep="   ")
    0 -1-> 1   1 -2-> 2   2 -3-> 3   3 -0-> 0
    0 -0-> 1   1 -1-> 2   2 -2-> 3   3 -3-> 0
    0 -3-> 1   1 -0-> 2   2 -1-> 3   3 -2-> 0
    """
    return (position - step + 1) % size, (position - step) % size


def line_scatter_step(position: int, step: int, size: int) -> tuple[int | None, int | None]:
    """(rising chunk, falling chunk) at a position in a step of a reduce-scatter on an open line.

    Chunk i goes to position i from both ends, and every position on its path combines it with its
    own chunk i. The chunk with the longest path starts first and advances one position per step.
    A position sends the rising chunk to the next higher position and the falling one to the next
    lower position, but keeps its own chunk. None where no chunk passes.

    >>> for step in range(4):
    ...     steps = {rank: line_scatter_step(rank, step, 4) for rank in range(4)}
    ...     up = [f"{rank} -{up}-> {rank + 1}" for rank, (up, _) in steps.items()
    ...           if up is not None and up > rank]
    ...     down = [f"{rank} -{down}-> {rank - 1}" for rank, (_, down) in steps.items()
    ...             if down is not None and down < rank]
    ...     print(*up, *down, sep="   ")
    0 -3-> 1   3 -0-> 2
    0 -2-> 1   1 -3-> 2   2 -0-> 1   3 -1-> 2
    0 -1-> 1   1 -2-> 2   2 -3-> 3   1 -0-> 0   2 -1-> 1   3 -2-> 2
    <BLANKLINE>
    """
    rising, falling = step - position, step - (size - 1 - position)
    return (size - 1 - rising if rising >= 0 else None), (falling if falling >= 0 else None)


def line_gather_step(position: int, step: int, size: int) -> tuple[int | None, int | None]:
    """(rising chunk, falling chunk) at a position in a step of an all-gather on an open line.

    A position sends the rising chunk to the next higher position and the falling one to the next
    lower position. Position i begins with chunk i. At step d it has the chunks of the positions d
    below and d above; None where there is no such position.

    >>> for step in range(3):
    ...     steps = {rank: line_gather_step(rank, step, 4) for rank in range(4)}
    ...     up = [f"{rank} -{up}-> {rank + 1}" for rank, (up, _) in steps.items()
    ...           if up is not None and rank < 3]
    ...     down = [f"{rank} -{down}-> {rank - 1}" for rank, (_, down) in steps.items()
    ...             if down is not None and rank > 0]
    ...     print(*up, *down, sep="   ")
    0 -0-> 1   1 -1-> 2   2 -2-> 3   1 -1-> 0   2 -2-> 1   3 -3-> 2
    1 -0-> 2   2 -1-> 3   1 -2-> 0   2 -3-> 1
    2 -0-> 3   1 -3-> 0
    """
    # A chunk advances one position per step, so at step d the chunks from a distance d pass.
    below, above = position - step, position + step
    return (below if below >= 0 else None), (above if above < size else None)


def doubling_partner(rank: int, bit: int) -> int:
    """The rank with which a rank exchanges all it has in step `bit` of recursive doubling.

    Partners differ in that bit. After step `bit`, the 2^(bit + 1) ranks with equal higher bits have
    the same sum.

    >>> for bit in range(2):
    ...     print(*(f"{rank} -all-> {doubling_partner(rank, bit)}" for rank in range(4)), sep="   ")
    0 -all-> 1   1 -all-> 0   2 -all-> 3   3 -all-> 2
    0 -all-> 2   1 -all-> 3   2 -all-> 0   3 -all-> 1
    """
    return rank ^ (1 << bit)


def halving_steps(rank: int, ranks: int) -> Iterator[tuple[int, Chunks, Chunks]]:
    """(bit, chunks kept, chunks sent) of every step of recursive halving, a reduce-scatter.

    There are 2^k ranks. In each step two ranks that differ in `bit` divide the chunks that both
    have, and each sends the half that it does not keep. The rank whose bit is set keeps the upper
    half.

    >>> for step in range(2):
    ...     steps = [list(halving_steps(rank, 4))[step] for rank in range(4)]
    ...     print(*(f"{rank} -{sent}-> {doubling_partner(rank, bit)}"
    ...             for rank, (bit, _, sent) in enumerate(steps)), sep="   ")
    0 -(2, 4)-> 1   1 -(0, 2)-> 0   2 -(2, 4)-> 3   3 -(0, 2)-> 2
    0 -(1, 2)-> 2   1 -(3, 4)-> 3   2 -(0, 1)-> 0   3 -(2, 3)-> 1
    """
    # From bit 0 on: partners are then nearest in the first step, which moves half of all elements,
    # and farthest in the last one, which moves a chunk (Rabenseifner's algorithm, R. Thakur, R.
    # Rabenseifner, W. Gropp, 2005).
    first, width = 0, ranks
    for bit in range(ranks.bit_length() - 1):
        width //= 2
        lower, upper = (first, first + width), (first + width, first + 2 * width)
        kept, sent = (upper, lower) if rank >> bit & 1 else (lower, upper)
        yield bit, kept, sent
        first = kept[0]


def halved_chunk(rank: int, ranks: int) -> int:
    """The chunk that `halving_steps` leaves to a rank: the bits of the rank in reverse order.

    >>> [halved_chunk(rank, 4) for rank in range(4)]
    [0, 2, 1, 3]
    """
    bits = ranks.bit_length() - 1
    return sum((rank >> bit & 1) << (bits - 1 - bit) for bit in range(bits))


def doubling_steps(rank: int, ranks: int) -> Iterator[tuple[int, Chunks, Chunks]]:
    """(bit, chunks sent, chunks received) of every step of the all-gather after `halving_steps`.

    It visits the bits in reverse order, and the number of chunks doubles in each step.

    >>> for step in range(2):
    ...     steps = [list(doubling_steps(rank, 4))[step] for rank in range(4)]
    ...     print(*(f"{rank} -{sent}-> {doubling_partner(rank, bit)}"
    ...             for rank, (bit, sent, _) in enumerate(steps)), sep="   ")
    0 -(0, 1)-> 2   1 -(2, 3)-> 3   2 -(1, 2)-> 0   3 -(3, 4)-> 1
    0 -(0, 2)-> 1   1 -(2, 4)-> 0   2 -(0, 2)-> 3   3 -(2, 4)-> 2
    """
    first, width = halved_chunk(rank, ranks), 1
    for bit in reversed(range(ranks.bit_length() - 1)):
        # Ranges are aligned to their width, so the neighbouring one differs in a single bit.
        received = first ^ width
        yield bit, (first, first + width), (received, received + width)
        first, width = min(first, received), 2 * width


def tree_step(rank: int, step: int, messages: int) -> tuple[int | None, int | None]:
    """(message sent to the parent, message sent to the children) in a step of a tree all-reduce.

    The tree is binary, with root 0, and each rank counts its own steps. A rank at depth d sends
    message i upwards in its step i, and the result of message i downwards in its step i + 2 d,
    after the message has passed the d links to the root and back. Up and down overlap, as in a
    pipeline. None where there is none.

    >>> parent = [None, 0, 0, 1]
    >>> for step in range(4):
    ...     steps = {rank: tree_step(rank, step, 2) for rank in range(4)}
    ...     up = [f"{rank} -{up}-> {parent[rank]}" for rank, (up, _) in steps.items()
    ...           if up is not None]
    ...     down = [f"{parent[rank]} -{steps[parent[rank]][1]}-> {rank}" for rank in range(1, 4)
    ...             if steps[parent[rank]][1] is not None]
    ...     print(*up, *down, sep="   ")
    1 -0-> 0   2 -0-> 0   3 -0-> 1   0 -0-> 1   0 -0-> 2
    1 -1-> 0   2 -1-> 0   3 -1-> 1   0 -1-> 1   0 -1-> 2
    1 -0-> 3
    1 -1-> 3
    """
    # Positions of depth d are 2^d - 1 to 2^(d + 1) - 2, as in a binary heap.
    depth = (rank + 1).bit_length() - 1
    upwards, downwards = step, step - 2 * depth
    return (
        upwards if rank > 0 and upwards < messages else None,
        downwards if 0 <= downwards < messages else None,
    )


def mesh_position(rank: int, columns: int) -> tuple[int, int]:
    """(row, column) of a rank in a row-major grid.

    An all-reduce over a grid is a reduce-scatter along the rows, an all-reduce of the own chunk
    along the columns, and an all-gather along the rows. On a 2 x 2 grid of open lines, with `1.0`
    for chunk 0 of chunk 1 of a row:

    >>> def steps(schedule, of_row, partner):
    ...     sends = []
    ...     for rank in range(4):
    ...         row, column = mesh_position(rank, 2)
    ...         position = column if of_row else row
    ...         chunk = schedule(position, 0, 2)[position]
    ...         name = f"{chunk}" if of_row else f"{column}.{chunk}"
    ...         sends.append(f"{rank} -{name}-> {partner(rank)}")
    ...     print(*sends, sep="   ")
    >>> steps(line_scatter_step, True, lambda rank: rank ^ 1)
    0 -1-> 1   1 -0-> 0   2 -1-> 3   3 -0-> 2
    >>> steps(line_scatter_step, False, lambda rank: rank ^ 2)
    0 -0.1-> 2   1 -1.1-> 3   2 -0.0-> 0   3 -1.0-> 1
    >>> steps(line_gather_step, False, lambda rank: rank ^ 2)
    0 -0.0-> 2   1 -1.0-> 3   2 -0.1-> 0   3 -1.1-> 1
    >>> steps(line_gather_step, True, lambda rank: rank ^ 1)
    0 -0-> 1   1 -1-> 0   2 -0-> 3   3 -1-> 2
    """
    return divmod(rank, columns)
