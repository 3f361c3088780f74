"""Attention on a ring of PEs of the mock runtime."""

from collections.abc import Callable
from functools import partial

import numpy as np

from kernbench import mock, tl
from kernbench.benches.attention.ring_decode import ring_decode
from kernbench.benches.attention.ring_prefill import RankShape, ring_prefill
from kernbench.benches.attention.rings import Ring
from runtime.core.coordinates import PeCoordinates
from runtime.core.dtypes import DType, float32
from runtime.language.mock import MockMemory, MockPe
from runtime.language.value import Array

RINGS = {"n_slots": 4, "slot_bytes": 4096}


def uniform(seed: int, *shape: int, dtype: DType = float32) -> Array:
    """Elements in [-1, 1)."""
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype.numpy)


def prefill(ring: Ring, q: Array, k: Array, v: Array) -> Array:
    """The result of `ring_prefill`; the rows of q, k and v are divided over the ranks."""
    ranks = len(ring.ranks)
    shape = RankShape(len(q) // ranks, len(k) // ranks, q.shape[1])
    return _run(ring, ring_prefill, (q, k, v), np.full(q.shape, np.nan, q.dtype), shape, ring)


def decode(ring: Ring, q: Array, k: Array, v: Array, context: int) -> Array:
    """The result of `ring_decode`, a row for each rank."""
    ranks = len(ring.ranks)
    shape = RankShape(1, len(k) // ranks, q.shape[1])
    out = np.full((ranks, q.shape[1]), np.nan, q.dtype)
    return _run(ring, ring_decode, (q, k, v), out, shape, ring, context)


def _run(
    ring: Ring,
    kernel: Callable[..., object],
    inputs: tuple[Array, ...],
    out: Array,
    *arguments: object,
) -> Array:
    memory = MockMemory()
    pointers = [memory.map(each, str(number)) for number, each in enumerate((*inputs, out))]
    pes = [MockPe(PeCoordinates(0, *at), memory=memory) for at in ring.ranks]
    for position, rank in enumerate(ring.order):
        next_rank = ring.order[(position + 1) % len(ring.order)]
        mock.connect(pes[rank], ring.towards[position], pes[next_rank], **RINGS)
    mock.run([(pe, partial(kernel, *pointers, *arguments)) for pe in pes])
    return out


def run_on_one_pe(function: Callable[..., tl.Value], *operands: Array) -> Array:
    """`function` of values with the content of `operands`, on one PE."""
    results = list[Array]()

    def kernel(*pointers: tl.Pointer) -> None:
        values = [
            tl.load(pointer, each.shape) for pointer, each in zip(pointers, operands, strict=True)
        ]
        data = function(*values).data
        assert data is not None
        results.append(data)

    mock.launch(kernel, *operands)
    return results[0]
