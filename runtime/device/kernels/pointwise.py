"""The kernel of operators that compute corresponding elements: load, convert, compute, convert,
store, block by block.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from runtime.core.dtypes import DType
from runtime.device.kernels.block_access import descriptor, loaded_block, loadings, storing
from runtime.device.kernels.bounds import IndexBounds
from runtime.device.kernels.conversions import in_type
from runtime.device.regions.blocks import BlockLimits, rounds
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
    numbered = list(enumerate(tensors, 1))

    def chain(*loaded: Value) -> Value:
        result = function(*(in_type(each, dtype) for each in loaded))
        return in_type(result, out.dtype)

    for group in rounds(parts, limits):
        with tl.scratch():
            if limits.is_in_turn:
                (block,) = group
                result = chain(*(tl.load(*loaded_block(block, *each)) for each in numbered))
                tl.store(out + block.starts[0], result, descriptor(block, 0, result.shape))
                continue
            pending = loadings(group, numbered)
            stores: list[tl.PendingResult] = []
            for block, loads in zip(group, pending, strict=True):
                loaded = [each.wait() for each in loads]
                if bounds is not None:
                    bounds.check(loaded[0])
                stores.append(storing(block, tl.fused(chain, *loaded), out))
            for each in stores:
                each.wait()


class PointwiseJob(NamedTuple):
    """One of the computations of a launch on a PE: the regions, the blocks, the tensors."""

    parts: Sequence[Region]
    limits: BlockLimits
    out: Pointer
    tensors: Sequence[Pointer]


def pointwise_each(function: Function, dtype: DType, jobs: Sequence[PointwiseJob]) -> None:
    """Kernel: `pointwise` of several results, one after the other."""
    for job in jobs:
        pointwise(function, dtype, job.parts, job.limits, job.out, job.tensors)


class UpdateJob(NamedTuple):
    """Tensors of a launch which are updated on a PE: the regions, the blocks, the tensors."""

    parts: Sequence[Region]
    limits: BlockLimits
    tensors: Sequence[Pointer]


def updated(
    function: Update, dtype: DType, jobs: Sequence[UpdateJob], written: tuple[int, ...]
) -> None:
    """Kernel: `function` of the tensors of each job in `dtype`, with its results over those with
    the numbers `written`.
    """
    for job in jobs:
        for group in rounds(job.parts, job.limits):
            with tl.scratch():
                pending = loadings(group, list(enumerate(job.tensors)))
                stores = list[tl.PendingResult]()
                for block, loads in zip(group, pending, strict=True):
                    loaded = [each.wait() for each in loads]
                    outs = [loaded[number] for number in written]
                    results = tl.fused(_rounded(function, dtype, outs), *loaded)
                    stores += [
                        tl.store_async(
                            job.tensors[number] + block.starts[number],
                            result,
                            descriptor(block, number, block.shape),
                        )
                        for number, result in zip(written, results, strict=True)
                    ]
                for each in stores:
                    each.wait()


def _rounded(
    function: Update, dtype: DType, outs: Sequence[Value]
) -> Callable[..., tuple[Value, ...]]:
    """The function of operands in `dtype`, with results in the types of `outs`."""
    types = [each.dtype for each in outs]

    def chain(*loaded: Value) -> tuple[Value, ...]:
        results = function(*(in_type(each, dtype) for each in loaded))
        return tuple(in_type(each, out) for each, out in zip(results, types, strict=True))

    return chain
