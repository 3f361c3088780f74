"""The rank program of the study at headline scale: its heads of one layer, on all PEs of a SIP."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernbench import DPPolicy, torch
from kernbench.benches.attention.grouped_prefill import grouped_prefill
from kernbench.benches.attention.queues import HYPERCUBE
from kernbench.benches.attention.split_decode import split_decode
from kernbench.studies.milestone_gqa_llama70b.headline_rows import (
    HeadlinePoint,
)
from runtime.core.device import Handle
from runtime.core.dtypes import float16
from runtime.device.kernels.attention.flash import BlockShape
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.language.value import Array

SEED = 1
"""Seed of the tensors; times do not depend on it."""
_ALL = DPPolicy(cube="row_wise", pe="row_wise")
_BY_CUBE = DPPolicy(cube="replicate", pe="row_wise")
_COPIED = DPPolicy()


class LayerTensors(NamedTuple):
    """q (KV heads, users, heads of a group, queries, depth), k and v (KV heads, users, tokens,
    depth).
    """

    q: Array
    k: Array
    v: Array

    def of_rank(self, rank: int, ranks: int) -> "LayerTensors":
        """The part of a rank: whole KV heads."""
        count = len(self.k) // ranks
        return LayerTensors(*(each[rank * count : (rank + 1) * count] for each in self))


class LayerOutcome(NamedTuple):
    """The result of a rank, None in a run without data, and the simulated time of its kernel."""

    result: Array | None
    kernel_ps: int


def layer_tensors(point: HeadlinePoint) -> LayerTensors:
    """Uniform in [-1, 1), rounded to float16, the same in every process."""
    layer = point.layer
    rng = np.random.default_rng([SEED, layer.batch, layer.tokens])
    users, queries = (layer.kv_heads, layer.batch), 1 if point.panel.is_decode else layer.tokens
    shapes = [
        (*users, layer.group, queries, layer.depth),
        *[(*users, layer.tokens, layer.depth)] * 2,
    ]
    # Elements are drawn in float32: half the time of float64.
    return LayerTensors(
        *((2 * rng.random(shape, np.float32) - 1).astype(np.float16) for shape in shapes)
    )


def layer_program(
    point: HeadlinePoint, tensors: LayerTensors | None
) -> Callable[[int], LayerOutcome]:
    """The rank program; without `tensors` nothing is written, for a run without data."""

    def main(rank: int) -> LayerOutcome:
        torch.ahbm.set_device(rank)
        torch.distributed.init_process_group("ahbm")
        placed = placed_tensors(
            point, None if tensors is None else tensors.of_rank(rank, point.sips)
        )
        launched = (_decode if point.panel.is_decode else _prefill)(point, placed)
        torch.ahbm.synchronize()
        result = None if tensors is None else placed[3].numpy()
        return LayerOutcome(result, launched.pe_exec_ps)

    return main


def placed_tensors(point: HeadlinePoint, tensors: LayerTensors | None) -> list[StoredTensor]:
    """q, k, v and the result on the device, as matrices with rows of `depth` elements."""
    own, decodes = point.own, point.panel.is_decode
    keys = own.sequences * own.tokens
    queries = own.sequences * own.group * (1 if decodes else own.tokens)
    # In a decode each PE has its part of the keys. In a prefill every cube has a copy of them,
    # since all blocks of queries use them.
    places = [_COPIED, _ALL, _ALL] if decodes else [_ALL, _BY_CUBE, _BY_CUBE]
    rows = [queries, keys, keys]
    placed = [
        torch.empty(count, own.depth, dtype=float16, dp=dp)
        if tensors is None
        else torch.from_numpy(tensors[index].reshape(count, own.depth), dp=dp)
        for index, (count, dp) in enumerate(zip(rows, places, strict=True))
    ]
    return [*placed, torch.empty(queries, own.depth, dtype=float16, dp=_spread(point))]


def block_shape(point: HeadlinePoint) -> BlockShape:
    """The blocks of scores of a prefill."""
    return BlockShape(point.rows, point.width, point.layer.depth)


def _spread(point: HeadlinePoint) -> DPPolicy:
    """A result over all PEs; with fewer sequences than cubes, on the first cube of each."""
    sequences, cubes = point.own.sequences, point.grid.cubes
    if not point.panel.is_decode or sequences > cubes:
        return _ALL
    roots = tuple(range(0, cubes, cubes // sequences))
    return DPPolicy(cube="row_wise", cubes=roots, num_pes=1)


def _prefill(point: HeadlinePoint, placed: list[StoredTensor]) -> Handle:
    arguments = (*placed, point.own, block_shape(point), point.grid)
    return torch.launch("prefill", grouped_prefill, *arguments)


def _decode(point: HeadlinePoint, placed: list[StoredTensor]) -> Handle:
    arguments = (*placed, point.own, point.width, point.grid)
    return torch.launch("decode", split_decode, *arguments, queues=HYPERCUBE)
