"""Grouped-query attention of a layer on all PEs of a SIP.

Queries, keys and values of the new tokens are the columns of one matrix, as its product has left
them.
"""

from collections.abc import Sequence

from kernbench import tl
from kernbench.benches.decoder_layer.cube_sums import cube_barrier
from kernbench.benches.decoder_layer.shape import Activations, LayerShape
from runtime.device.kernels.attention.flash import BlockShape, FlashItem, flash
from runtime.device.kernels.attention.online_softmax import (
    SoftmaxState,
    attended,
    block_state,
    extended,
    normalise,
)

KEYS = 256
"""Most keys of a block of scores of a decode."""
ROWS, WIDTH = 64, 320
"""Most queries and most keys of a block of scores of a prefill."""


def decode_attention(
    qkv: tl.Pointer,
    keys: tl.Pointer,
    values: tl.Pointer,
    exchange: tl.Pointer,
    out: tl.Pointer,
    shape: LayerShape,
) -> None:
    """Kernel: one new token over a cache of keys and values (KV head, token, depth), which lies in
    equal parts on all PEs. The new key and value become its last.

    The PEs of a cube combine the states of their parts, each one for some columns; then the cubes
    of a head do.
    """
    pe, pes, cube = tl.program_id(0), tl.num_programs(0), tl.program_id(1)
    cubes = tl.num_programs(1) // shape.kv_heads
    head, part = cube // cubes, cube % cubes * pes + pe
    count, depth, group = shape.context // (cubes * pes), shape.depth, shape.group
    start = (head * shape.context + part * count) * depth
    q = tl.load_async(qkv + head * group * depth, (group, depth))
    if part == cubes * pes - 1:
        _append(qkv, keys, values, head, shape)
    state = _over_keys(q.wait(), keys + start, values + start, count)

    columns = depth // pes
    message = 2 * group + group * columns
    slots = exchange + (cube * pes + pe) * (pes + tl.num_programs(1)) * message
    of_pe = (pes + tl.num_programs(1)) * message
    stores = [
        tl.store_async(
            slots + (other - pe) * of_pe + pe * message,
            _message(state, other * columns, columns),
        )
        for other in range(pes)
    ]
    for store in stores:
        store.wait()
    cube_barrier(pes)
    state = _received(slots, pes, group, columns)
    root = slots + (head * cubes - cube) * pes * of_pe
    place = (pes + cube % cubes) * message
    tl.store(root + place, _message(state, 0, columns))
    tl.barrier()
    if cube % cubes:
        return
    state = _received(slots + pes * message, cubes, group, columns)
    tl.store(out + head * group * depth + pe * columns, attended(state, out.dtype), (depth, 1))


def _append(
    qkv: tl.Pointer, keys: tl.Pointer, values: tl.Pointer, head: int, shape: LayerShape
) -> None:
    """Copy the new key and value to the end of the cache."""
    depth = shape.depth
    new = qkv + (shape.heads + head) * depth
    last = (head * shape.context + shape.context - 1) * depth
    sources = new, new + shape.kv_heads * depth
    _copy_blocks(sources, (keys + last, values + last), (1, depth))


def _over_keys(q: tl.Value, keys: tl.Pointer, values: tl.Pointer, count: int) -> SoftmaxState:
    """The state of queries over `count` keys."""
    depth, state = q.shape[1], None
    for first in range(0, count, KEYS):
        block = (min(KEYS, count - first), depth)
        k = tl.load_async(keys + first * depth, block)
        v = tl.load_async(values + first * depth, block)
        scores = tl.dot(q, k.wait().mT) * depth**-0.5
        state = extended(state, scores, v.wait()) if state else block_state(scores, v.wait())
    assert state is not None
    return state


def _message(state: SoftmaxState, first: int, columns: int) -> tl.Value:
    return tl.cat([state.m, state.l, state.o[:, first : first + columns]])


def _received(slots: tl.Pointer, count: int, group: int, columns: int) -> SoftmaxState:
    """The state over `count` messages."""
    messages = tl.load(slots, (count, 2 * group + group * columns))
    m, sums = messages[:, :group], messages[:, group : 2 * group]
    o = messages[:, 2 * group :].reshape(count, group, columns)

    highest = tl.max(m, axis=0, keep_dims=True)
    weights = tl.exp(m - highest)
    return SoftmaxState(
        highest.reshape(group, 1),
        tl.sum(weights * sums, axis=0).reshape(group, 1),
        tl.sum(weights[:, :, None] * o, axis=0),
    )


def prefill_attention(
    qkv: tl.Pointer, copies: tl.Pointer, out: tl.Pointer, shape: LayerShape
) -> None:
    """Kernel: causal attention of all tokens; blocks of queries are dealt to the PEs in turn.

    First each cube makes its own copy of the keys and values that its PEs use, in `copies`: blocks
    of queries would load them many times, from the memories of few cubes.
    """
    pe, pes_of_cube, cube = tl.program_id(0), tl.num_programs(0), tl.program_id(1)
    pes, depth = pes_of_cube * tl.num_programs(1), shape.depth
    rows = min(ROWS, max(1, shape.tokens * shape.heads // pes))
    blocks = shape.tokens // rows
    # By PE of the cube. Late blocks have more keys: they begin.
    units = [
        [
            (unit % shape.heads, (blocks - 1 - unit // shape.heads) * rows)
            for unit in range(cube * pes_of_cube + each, shape.heads * blocks, pes)
        ]
        for each in range(pes_of_cube)
    ]
    used = sorted({head // shape.group for of_pe in units for head, _ in of_pe})
    cached = {head: _copy(qkv, copies, shape, head) for head in used}
    cube_barrier(pes_of_cube)
    heads = Activations(shape.tokens, depth)
    items = [
        FlashItem(
            qkv + heads.start(token, head * depth),
            *cached[head // shape.group],
            token + rows,
            is_causal=True,
        )
        for head, token in units[pe]
    ]
    states = flash(items, BlockShape(rows, min(WIDTH, shape.tokens), depth))
    panels = Activations(shape.tokens, shape.heads * depth // pes_of_cube)
    for (head, token), state in zip(units[pe], states, strict=True):
        with tl.scratch():
            result = tl.empty((rows, depth), out.dtype)
            normalise(state, result)
            for column, count in panels.runs(head * depth, depth):
                start = out + panels.start(token, head * depth + column)
                tl.store(start, result[:, column : column + count], (panels.width, 1))


def _copy(
    qkv: tl.Pointer, copies: tl.Pointer, shape: LayerShape, head: int
) -> tuple[tl.Pointer, tl.Pointer]:
    """Copy the part of this PE of the keys and values of a head; where the whole copies begin."""
    heads, own = Activations(shape.tokens, shape.depth), shape.tokens // tl.num_programs(0)
    block, first = (own, shape.depth), tl.program_id(0) * own * shape.depth
    columns = head * shape.depth, (shape.kv_heads + head) * shape.depth
    keys, values = (copies + heads.start(0, column) for column in columns)
    behind = shape.heads * shape.depth
    with tl.scratch():
        sources = [qkv + heads.start(0, behind + column) + first for column in columns]
        _copy_blocks(sources, (keys + first, values + first), block)
    return keys, values


def _copy_blocks(
    sources: Sequence[tl.Pointer], targets: Sequence[tl.Pointer], block: tuple[int, int]
) -> None:
    """Copy a block from each source to its target; all loads are in flight at once."""
    loads = [tl.load_async(source, block) for source in sources]
    stores = [
        tl.store_async(target, load.wait()) for target, load in zip(targets, loads, strict=True)
    ]
    for store in stores:
        store.wait()
