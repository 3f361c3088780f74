"""The bench `tp-attention-block`: the attention of a transformer layer, its heads divided over all
SIPs as in Megatron.

The projections to queries, keys and values are one column parallel layer, so that a rank has whole
heads; a kernel computes softmax(q k^T / sqrt(d)) v of each of them; the output projection is a row
parallel layer with the all-reduce.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from kernbench import BenchOutcome, bench, tl, torch
from kernbench.benches.tensor_parallel import (
    FLOATS,
    all_reduce_bound_ps,
    check_divides,
    check_layer_flags,
    eps,
    is_equal_on_all_ranks,
    is_within,
    join_groups,
    leave_groups,
    roofline_ps,
    table_of,
    timed,
    weights,
)
from runtime.ccl.config import CclConfig
from runtime.core.dtypes import DType
from runtime.core.errors import UsageError
from runtime.device.launches.launch import launch_on
from runtime.language.value import Array, Pointer
from runtime.torch.tensors.tensor import Tensor
from runtime.tp import ColumnParallelLinear, RowParallelLinear

CHECKS = 2
"""The checks of each rank."""


@dataclass(frozen=True)
class HeadShape:
    """`heads` heads of `depth` columns each for `tokens` tokens; a step takes `rows` queries.

    The matrix of a rank has the columns of all queries, then of all keys, then of all values.
    """

    tokens: int
    heads: int
    depth: int
    rows: int

    @property
    def width(self) -> int:
        """The columns of all heads of a rank."""
        return self.heads * self.depth

    @property
    def steps(self) -> int:
        """The blocks of queries of all heads."""
        return self.heads * tl.cdiv(self.tokens, self.rows)

    def scratch_bytes(self, itemsize: int) -> int:
        """Bytes of a step: keys, their transpose, values; queries and result; scores (twice) and
        shares in float32, then in the type of the values.
        """
        blocks = 3 * self.tokens * self.depth + 2 * self.rows * self.depth
        scores = self.rows * self.tokens
        return blocks * itemsize + scores * (3 * 4 + itemsize)


def attend(qkv: tl.Pointer, out: tl.Pointer, shape: HeadShape, grid: tuple[int, int]) -> None:
    """Kernel: every n-th step of softmax(q k^T / sqrt(depth)) v, beginning with the number of the
    PE. `grid` is n, the number of PEs of the launch, and that of the PEs of a cube.
    """
    pes, pes_per_cube = grid
    # Not `tl.num_programs(0)`: the last cube of the launch can have fewer PEs than the others.
    pe = tl.program_id(1) * pes_per_cube + tl.program_id(0)
    tokens, depth, pitch = shape.tokens, shape.depth, 3 * shape.width
    blocks = tl.cdiv(tokens, shape.rows)
    for step in range(pe, shape.steps, pes):
        head, block = divmod(step, blocks)
        column, top = head * depth, block * shape.rows
        rows = min(shape.rows, tokens - top)
        with tl.scratch():
            q = tl.load(qkv + top * pitch + column, (rows, depth), strides=(pitch, 1))
            k = tl.load(qkv + shape.width + column, (tokens, depth), strides=(pitch, 1))
            v = tl.load(qkv + 2 * shape.width + column, (tokens, depth), strides=(pitch, 1))
            scores = tl.dot(q, k.T) * (1 / sqrt(depth))
            shares = tl.softmax(scores, axis=1).to(v.dtype)
            result = tl.dot(shares, v, out_dtype=v.dtype)
            tl.store(out + top * shape.width + column, result, strides=(shape.width, 1))


def check_flags(ccl: CclConfig, **sizes: Any) -> None:
    """Raise `UsageError` for wrong flags, before a process starts."""
    check_layer_flags(ccl, **sizes)
    if sizes["width"] % sizes["heads"]:
        raise UsageError(f"--width {sizes['width']}: does not divide by {sizes['heads']} heads")


@bench(
    "tp-attention-block",
    "attention with its heads divided over all SIPs as in Megatron, checked against float64",
    check_flags,
    tokens="rows of x",
    width="columns of x and of the result, divided over the heads",
    heads="attention heads, divided over the ranks",
    dtype=f"element type: {', '.join(FLOATS)}",
    warmup="calls before the timed one; the first one also maps the tensors",
)
def tp_attention_block(
    rank: int,
    *,
    tokens: int = 64,
    width: int = 256,
    heads: int = 8,
    dtype: str = "float16",
    warmup: int = 1,
) -> BenchOutcome:
    """Time the block with random weights; compare it with float64, and the ranks with each
    other.
    """
    ranks, element = join_groups(rank), FLOATS[dtype]
    check_divides("heads", heads, ranks)
    shape = HeadShape(tokens, heads // ranks, width // heads, min(tokens, 32))
    _check_scratch(shape, element)
    x, projections, output = (
        weights(each, element, seed)
        for seed, each in enumerate(((tokens, width), (width, 3, width), (width, width)))
    )
    inner = ColumnParallelLinear(width, 3 * width, dtype=element)
    outer = RowParallelLinear(width, width, dtype=element)
    own = slice(rank * shape.width, (rank + 1) * shape.width)
    inner.weight.copy_(projections[:, :, own].reshape(width, -1))
    outer.weight.copy_(output[own])
    on_device = torch.from_numpy(x)
    y, time_ps = timed(lambda: outer(_attention(inner(on_device), shape)), warmup)
    is_right = _is_right(y.numpy(), x, projections, output, heads, ranks)
    is_equal = is_equal_on_all_ranks(y)
    leave_groups()
    labels = {"tokens": tokens, "width": width, "heads": heads, "dtype": dtype}
    all_reduce_ps = all_reduce_bound_ps(y.numel(), element, ranks)
    table = table_of(labels, time_ps, roofline_ps(_products(shape, width), element), all_reduce_ps)
    if not torch.ahbm.has_data():
        return BenchOutcome("tp_attention_block", 0, 0, unchecked=CHECKS, table=table)
    ok = is_right + is_equal
    return BenchOutcome("tp_attention_block", ok, CHECKS - ok, table=table)


def _check_scratch(shape: HeadShape, dtype: DType) -> None:
    needed = shape.scratch_bytes(dtype.itemsize)
    capacity = torch.ahbm.get_device_properties().kernel_scratch_bytes_per_pe
    if needed > capacity:
        raise UsageError(
            f"--tokens {shape.tokens}: a head needs {needed:,} bytes; the scratch of a kernel has "
            f"{capacity:,}"
        )


def _attention(qkv: Tensor, shape: HeadShape) -> Tensor:
    """The result of all heads of the rank, (tokens, width); the steps are on all PEs."""
    properties = torch.ahbm.get_device_properties()
    out = torch.empty(shape.tokens, shape.width, dtype=qkv.dtype)
    grid = (min(shape.steps, properties.pe_count), properties.pes_per_cube)
    arguments = (*(Pointer(each.address, each.dtype) for each in (qkv, out)), shape, grid)
    coordinates = [divmod(number, grid[1]) for number in range(grid[0])]
    launch_on("attend", attend, arguments, [qkv, out], coordinates)
    return out


def _products(shape: HeadShape, width: int) -> list[tuple[int, int, int]]:
    """The products of a rank: projections, scores and values of all heads, output."""
    tokens, own = shape.tokens, shape.width
    heads = [(tokens, shape.depth, tokens), (tokens, tokens, shape.depth)] * shape.heads
    return [(tokens, width, 3 * own), *heads, (tokens, own, width)]


def _is_right(
    y: Array, x: Array, projections: Array, output: Array, heads: int, ranks: int
) -> bool:
    x, projections, output = (each.astype(np.float64) for each in (x, projections, output))
    tokens, width = x.shape
    depth = width // heads
    q, k, v = (
        (x @ projections[:, part]).reshape(tokens, heads, depth).swapaxes(0, 1) for part in range(3)
    )
    scores = q @ k.swapaxes(1, 2) / sqrt(depth)
    shares = np.exp(scores - scores.max(axis=2, keepdims=True))
    shares /= shares.sum(axis=2, keepdims=True)
    attended, sizes = shares @ v, shares @ np.abs(v)
    single = eps(next(each for each in FLOATS.values() if each.numpy == y.dtype))
    # Rounded q and k change a score by this much, and a share by twice the factor.
    moved = single * (np.abs(q) @ np.abs(k).swapaxes(1, 2)).max(axis=2, keepdims=True) / sqrt(depth)
    # Half an eps each: v, the shares, the result; twice that for the sums in float32.
    errors = (2 * moved + 3 * single) * sizes
    joined, allowed = (each.swapaxes(0, 1).reshape(tokens, width) for each in (attended, errors))
    parts = [
        np.abs(left @ right)
        for left, right in zip(np.split(joined, ranks, 1), np.split(output, ranks), strict=True)
    ]
    allowed = allowed @ np.abs(output) + single * ranks * sum(parts)
    return is_within(y, joined @ output, allowed)
