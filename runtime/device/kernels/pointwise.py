"""The kernel of operators that compute corresponding elements: load, convert, compute, convert,
store, in a stream of blocks.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from runtime.core.dtypes import DType
from runtime.device.kernels.block_access import (
    BlockOperand,
    BlockStores,
    JobBlock,
    descriptor,
    loaded_block,
    loaded_shape,
)
from runtime.device.kernels.bounds import IndexBounds
from runtime.device.kernels.conversions import in_type
from runtime.device.kernels.streamed import SIDE_BY_SIDE, BlockRing, streamed
from runtime.device.regions.blocks import BlockLimits, MatrixBlock, blocks
from runtime.device.regions.regions import Region
from runtime.language import tl
from runtime.language.value import Pointer, Value

Function = (
    Callable[[Value], Value]
    | Callable[[Value, Value], Value]
    | Callable[[Value, Value, Value], Value]
    | Callable[[Value, Value, Value, Value], Value]
    | Callable[[*tuple[Value, ...]], Value]
    | Callable[[Value, Value, *tuple[Value, ...]], Value]
    | Callable[[Value, Value, Value, *tuple[Value, ...]], Value]
)
"""A function of values in the language of kernels. By its forms the checker types lambdas."""
Update = Callable[..., tuple[Value, ...]]
"""One with several results."""


class PointwiseJob(NamedTuple):
    """One of the computations of a launch on a PE: the regions, the blocks, the tensors."""

    parts: Sequence[Region]
    limits: BlockLimits
    out: Pointer
    tensors: Sequence[Pointer]


def pointwise(  # noqa: PLR0917 - the arguments of a launch are positional
    function: Function,
    dtype: DType,
    parts: Sequence[Region],
    limits: BlockLimits,
    out: Pointer,
    tensors: Sequence[Pointer],
    bounds: IndexBounds | None = None,
) -> None:
    """Kernel: `function` of the tensors, which are converted to `dtype`, on the regions of this PE,
    in blocks within `limits`. The operations of a block are one chain of the vector engine, beside
    the loads of the next blocks and the stores of those before; of blocks in turn, each operation
    is a command of its own. With `bounds`, the first tensor has indices.
    """
    chain = _rounded(function, dtype, out.dtype)
    if not limits.is_in_turn:
        stream(chain, [PointwiseJob(parts, limits, out, tensors)], bounds)
        return
    numbered = list(enumerate(tensors, 1))
    for part in parts:
        for block in blocks(part, limits):
            with tl.scratch():
                result = chain(*(tl.load(*loaded_block(block, *each)) for each in numbered))
                tl.store(out + block.starts[0], result, descriptor(block, 0, result.shape))


def pointwise_each(function: Function, dtype: DType, jobs: Sequence[PointwiseJob]) -> None:
    """Kernel: `pointwise` of several results of one type, the blocks of which are one stream."""
    stream(_rounded(function, dtype, jobs[0].out.dtype), jobs)


def _rounded(function: Function, dtype: DType, out: DType) -> Callable[..., Value]:
    """The function of operands in `dtype`, with the result in `out`."""

    def chain(*loaded: Value) -> Value:
        return in_type(function(*(in_type(each, dtype) for each in loaded)), out)

    return chain


def stream(
    chain: Callable[..., Value] | None,
    jobs: Sequence[PointwiseJob],
    bounds: IndexBounds | None = None,
) -> None:
    """Store what `chain` returns of the blocks of each job, or without one their only operand. The
    jobs have tensors of the same types.
    """
    items = _items(jobs)
    if not items:
        return
    # What is copied is in the scratch until it is stored.
    slots = SIDE_BY_SIDE.slots(0, SIDE_BY_SIDE.behind(int(chain is None)))
    operands = [
        BlockOperand(pointers, number, items, slots)
        for number, pointers in enumerate(zip(*(each.tensors for each in jobs), strict=True), 1)
    ]
    most = max(prod(each.block.shape) for each in items)
    # Blocks of which the operands together have not all elements.
    small = {index for index, each in enumerate(items) if _is_small(each.block)}
    mask = tl.full(most, 1, tl.int1) if small else None
    ring = BlockRing(2, most, jobs[0].out.dtype) if chain is not None or small else None
    results: dict[int, Value] = {}
    stores = BlockStores(items)

    def widened(mask: Value, *loaded: Value) -> Value:
        result = loaded[0] if chain is None else chain(*loaded)
        return tl.where(mask, result, result)

    def load(index: int) -> None:
        for each in operands:
            each.load(index)

    def compute(index: int) -> None:
        loaded = [each.loaded(index) for each in operands]
        if bounds is not None:
            bounds.check(loaded[0])
        shape = items[index].block.shape
        result = results[index] = loaded[0] if ring is None else ring.of(index, shape)
        if mask is not None and index in small:
            tl.fused_async(widened, mask[: prod(shape)].reshape(shape), *loaded, out=result)
        elif chain is not None:
            tl.fused_async(chain, *loaded, out=result)
        else:
            results[index] = loaded[0]

    def store(index: int) -> None:
        stores.start(index, [(0, jobs[items[index].job].out, results.pop(index))])

    streamed(len(items), SIDE_BY_SIDE, load, [compute], store)


def _is_small(block: MatrixBlock) -> bool:
    shapes = [loaded_shape(block, number) for number in range(1, len(block.starts))]
    return tuple(map(max, *shapes, (1, 1))) != block.shape


class UpdateJob(NamedTuple):
    """Tensors of a launch which are updated on a PE: the regions, the blocks, the tensors."""

    parts: Sequence[Region]
    limits: BlockLimits
    tensors: Sequence[Pointer]


class Factors(NamedTuple):
    """Numbers in place of the tensor with a number, which has one element: as many `results` of a
    function, which the vector engine computes once for a job, in any type.
    """

    number: int
    function: Update
    results: int


UPDATE_PACE = SIDE_BY_SIDE
"""The pace of updates, which have two chains: the factors of a job, and a block."""


def update_slots(number: int, written: Sequence[int]) -> int:
    """The blocks of a tensor that an update has in the scratch: what is written, until it is
    stored.
    """
    return UPDATE_PACE.slots(0, UPDATE_PACE.behind(2 if number in written else 1))


def updated(
    function: Update,
    dtype: DType,
    jobs: Sequence[UpdateJob],
    written: tuple[int, ...],
    factors: Factors | None,
) -> None:
    """Kernel: `function` of the tensors of each job in `dtype`, with its results over those with
    the numbers `written`. The blocks of all jobs are one stream.
    """
    items = _items(jobs)
    if not items:
        return
    columns = list(enumerate(zip(*(each.tensors for each in jobs), strict=True)))
    types = [columns[number][1][0].dtype for number in written]
    operands = [
        BlockOperand(pointers, number, items, update_slots(number, written))
        for number, pointers in columns
    ]
    rings = [BlockRing(3, 1, dtype) for _ in range(factors.results)] if factors is not None else []
    loaded: dict[int, list[Value]] = {}
    stores = BlockStores(items)

    def chain(*loaded: Value) -> tuple[Value, ...]:
        results = function(*(in_type(each, dtype) for each in loaded))
        return tuple(in_type(each, out) for each, out in zip(results, types, strict=True))

    def load(index: int) -> None:
        for each in operands:
            each.load(index)

    def prepare(index: int) -> None:
        values = loaded[index] = [each.loaded(index) for each in operands]
        if factors is None:
            return
        numbers = tuple(each.of(items[index].job, (1, 1)) for each in rings)
        if not index or items[index].job != items[index - 1].job:
            tl.fused_async(factors.function, values[factors.number], out=numbers)
        values[factors.number : factors.number + 1] = numbers

    def compute(index: int) -> None:
        values = loaded[index]
        tl.fused_async(chain, *values, out=tuple(values[number] for number in written))

    def store(index: int) -> None:
        pointers, values = jobs[items[index].job].tensors, loaded.pop(index)
        stores.start(index, [(number, pointers[number], values[number]) for number in written])

    streamed(len(items), UPDATE_PACE, load, [prepare, compute], store)


def _items(jobs: Sequence[PointwiseJob | UpdateJob]) -> list[JobBlock]:
    return [
        JobBlock(number, block)
        for number, job in enumerate(jobs)
        for part in job.parts
        for block in blocks(part, job.limits)
    ]
