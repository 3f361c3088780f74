"""Grouped-query attention of a layer on all PEs of a SIP.

Queries, keys and values of the new tokens are the columns of one matrix, as its product has left
them.
"""

from kernbench import tl
from kernbench.benches.attention.flash import BlockShape, FlashItem, flash
from kernbench.benches.attention.online_softmax import (
    SoftmaxState,
    attended,
    block_state,
    extended,
    normalise,
)
from kernbench.studies.llama70b_layer.cube_barrier import cube_barrier
from kernbench.studies.llama70b_layer.shape import Activations, LayerShape

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
    loads = [
        tl.load_async(new, (1, depth)),
        tl.load_async(new + shape.kv_heads * depth, (1, depth)),
    ]
    stores = [
        tl.store_async(cache + last, load.wait())
        for cache, load in zip((keys, values), loads, strict=True)
    ]
    for store in stores:
        store.wait()


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


def prefill_attention(qkv: tl.Pointer, out: tl.Pointer, shape: LayerShape) -> None:
    """Kernel: causal attention of all tokens; blocks of queries are dealt to the PEs in turn."""
    number = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    pes, depth = tl.num_programs(0) * tl.num_programs(1), shape.depth
    rows = min(ROWS, max(1, shape.tokens * shape.heads // pes))
    blocks = shape.tokens // rows
    # Late blocks have more keys: they begin.
    units = [
        (unit % shape.heads, (blocks - 1 - unit // shape.heads) * rows)
        for unit in range(number, shape.heads * blocks, pes)
    ]
    items = [_item(qkv, shape, head, token, rows) for head, token in units]
    states = flash(items, BlockShape(rows, min(WIDTH, shape.tokens), depth))
    panels = Activations(shape.tokens, shape.heads * depth // tl.num_programs(0))
    for (head, token), state in zip(units, states, strict=True):
        with tl.scratch():
            result = tl.empty((rows, depth), out.dtype)
            normalise(state, result)
            for column, count in panels.runs(head * depth, depth):
                start = out + panels.start(token, head * depth + column)
                tl.store(start, result[:, column : column + count], (panels.width, 1))


def _item(qkv: tl.Pointer, shape: LayerShape, head: int, token: int, rows: int) -> FlashItem:
    """The queries of a head from `token` on, and the keys and values up to the last of them."""
    heads = Activations(shape.tokens, shape.depth)
    keys = shape.heads + head // shape.group
    q, k, v = (
        qkv + heads.start(first, column * shape.depth)
        for first, column in ((token, head), (0, keys), (0, keys + shape.kv_heads))
    )
    return FlashItem(q, k, v, token + rows, is_causal=True)
