"""Decode of one grouped-query layer on all PEs of a SIP: the keys of a sequence split over PEs.

Every PE reads the keys and values in its own memory, once for all heads of a group. The states (m,
l, o) of the parts of a sequence are combined along a binary tree.
"""

from kernbench import tl
from kernbench.benches.attention.layer import AttentionLayer, PeGrid
from runtime.device.kernels.attention.flash import BlockShape, FlashItem, flash
from runtime.device.kernels.attention.online_softmax import SoftmaxState, joined, normalise


def split_decode(  # noqa: PLR0917 - the arguments of a launch are positional
    q: tl.Pointer,
    k: tl.Pointer,
    v: tl.Pointer,
    out: tl.Pointer,
    layer: AttentionLayer,
    width: int,
    grid: PeGrid,
) -> None:
    """Kernel: the attention of one query a head over all keys; layouts as in `AttentionLayer`.

    k and v are split over the PEs in their order. The number of sequences divides that of PEs, or
    the reverse; the first PE of those with parts of a sequence stores its result.
    """
    number = tl.program_id(1) * grid.pes + tl.program_id(0)
    parts = max(1, grid.size // layer.sequences)
    part, keys = number % parts, layer.tokens // parts
    count = max(1, layer.sequences // grid.size)
    sequences = range(number // parts * count, number // parts * count + count)
    shape = BlockShape(layer.group, width, layer.depth)
    items = [_part((q, k, v), layer, sequence, part * keys, keys) for sequence in sequences]
    results = [tl.zeros((layer.group, layer.depth), out.dtype) for _ in range(2)]
    for sequence, state in zip(sequences, flash(items, shape), strict=True):
        whole = reduced(state, part, parts)
        if whole is not None:
            start = sequence * layer.group * layer.depth
            result = results[sequence % 2]
            normalise(whole, result)
            tl.store_async(out + start, result)


def _part(
    tensors: tuple[tl.Pointer, tl.Pointer, tl.Pointer],
    layer: AttentionLayer,
    sequence: int,
    first: int,
    keys: int,
) -> FlashItem:
    """The heads of a group over the keys of a sequence from `first` on."""
    q, k, v = tensors
    start = (sequence * layer.tokens + first) * layer.depth
    return FlashItem(q + sequence * layer.group * layer.depth, k + start, v + start, keys)


def reduced(state: SoftmaxState, part: int, parts: int) -> SoftmaxState | None:
    """The state over all `parts` parts, a power of 2, on the PE of part 0; None on the others.

    In round b the PEs whose bit b is set send to those which differ in it, and have ended.
    """
    rows, depth = state.o.shape
    bit = 0
    while 1 << bit < parts:
        direction = f"bit_{bit}"
        # A binary tree: in each of log2(parts) rounds half of the PEs that are left send their
        # state to the other half, and end.
        if part >> bit & 1:
            tl.send(direction, tl.cat([state.m, state.l]))
            tl.send(direction, state.o)
            return None
        sums = tl.recv(direction, 2 * rows, tl.float32)
        other = tl.recv(direction, (rows, depth), tl.float32)
        state = joined(state, SoftmaxState(sums[:rows, None], sums[rows:, None], other))
        bit += 1
    return state
