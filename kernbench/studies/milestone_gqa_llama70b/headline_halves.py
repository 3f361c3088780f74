"""Checks a prefill that is too long for a run of all heads with data: one head of it, by halves.

The head is computed with data on all PEs of a SIP: by the kernel of the study over all keys, and
from two states (m, l, o) of each query, over the first half of the keys and over the second, which
the rule of online softmax joins. Both results must be equal within the rounding of float16, and the
first one equal to float64, which is computed block by block.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kernbench import torch
from kernbench.benches.attention.grouped_prefill import grouped_prefill, halved_prefill
from kernbench.benches.attention.reference import attention
from kernbench.simulation import simulate
from kernbench.studies.milestone_gqa_llama70b.headline_points import BLOCK_ROWS, HeadlinePoint
from kernbench.studies.milestone_gqa_llama70b.headline_program import (
    block_shape,
    layer_tensors,
    placed_tensors,
)
from runtime.language.value import Array

QUERIES = BLOCK_ROWS
"""Queries whose scores are in memory at once, in float64; it divides the tokens."""


class HeadErrors(NamedTuple):
    """Largest absolute differences: of the head from float64, and of its result by halves."""

    exact: float
    halves: float


def head_errors(point: HeadlinePoint) -> HeadErrors:
    """Simulate one head of a prefill of one user, with data."""
    layer = replace(point.layer, heads=1, kv_heads=1)
    head = replace(point, layer=layer, sips=1, topology=point.one_sip)
    tensors, shape = layer_tensors(head), block_shape(point)

    def main(rank: int) -> list[Array]:
        torch.ahbm.set_device(rank)
        results = list[Array]()
        for kernel in (grouped_prefill, halved_prefill):
            placed = placed_tensors(head, tensors)
            torch.launch(kernel.__name__, kernel, *placed, layer, shape, head.grid)
            results.append(placed[3].numpy().astype(np.float64))
        return results

    world = simulate(
        main,
        1,
        topology=head.topology,
        ccl=head.ccl,
        # The op log is not needed, and is longer than memory should hold.
        on_records=lambda sip, records: None,  # noqa: ARG005
    )
    whole, halves = world.returned[0]
    q, k, v = (each.reshape(layer.tokens, layer.depth) for each in tensors)
    exact = np.concatenate(
        [
            attention(q[end - QUERIES : end], k[:end], v[:end], causal=True)
            for end in range(QUERIES, layer.tokens + 1, QUERIES)
        ]
    )
    return HeadErrors(float(np.abs(whole - exact).max()), float(np.abs(halves - whole).max()))
