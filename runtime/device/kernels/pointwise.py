"""The kernel of operators that compute corresponding elements: load, convert, compute, convert,
store, block by block.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kernbench.torch_backend.launching.partition import BlockLimits, MatrixBlock, rounds
from runtime.core.dtypes import DType
from runtime.device.kernels.bounds import IndexBounds
from runtime.language import tl
from runtime.language.value import Pointer, Value
from runtime.torch.arithmetic.regions import Region

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
    the loads of the next blocks and the stores of those before. With `bounds`, the first tensor has
    indices.
    """

    def chain(*loaded: Value) -> Value:
        result = function(*(_in(each, dtype) for each in loaded))
        return _in(result, out.dtype)

    for group in rounds(parts, limits):
        with tl.scratch():
            pending = _loadings(group, list(enumerate(tensors, 1)))
            stores: list[tl.PendingResult] = []
            for block, loads in zip(group, pending, strict=True):
                loaded = [each.wait() for each in loads]
                if bounds is not None:
                    bounds.check(loaded[0])
                stores.append(_storing(block, tl.fused(chain, *loaded), out))
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
                pending = _loadings(group, list(enumerate(job.tensors)))
                stores = list[tl.PendingResult]()
                for block, loads in zip(group, pending, strict=True):
                    loaded = [each.wait() for each in loads]
                    outs = [loaded[number] for number in written]
                    results = tl.fused(_rounded(function, dtype, outs), *loaded)
                    stores += [
                        tl.store_async(
                            job.tensors[number] + block.starts[number],
                            result,
                            _descriptor(block, number, block.shape),
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
        results = function(*(_in(each, dtype) for each in loaded))
        return tuple(_in(each, out) for each, out in zip(results, types, strict=True))

    return chain


def copied(parts: Sequence[Region], limits: BlockLimits, out: Pointer, source: Pointer) -> None:
    """Kernel: copy elements, converted to the type of `out`, to the regions of this PE."""
    for group in rounds(parts, limits):
        with tl.scratch():
            pending = [_loading(block, 1, source) for block in group]
            stores = [
                _storing(block, _in(load.wait(), out.dtype), out)
                for block, load in zip(group, pending, strict=True)
            ]
            for each in stores:
                each.wait()


class CopyJob(NamedTuple):
    """One of the copies of a launch on a PE."""

    parts: Sequence[Region]
    limits: BlockLimits
    out: Pointer
    source: Pointer


def copied_each(jobs: Sequence[CopyJob]) -> None:
    """Kernel: several copies, one after the other."""
    for job in jobs:
        copied(*job)


def filled(parts: Sequence[Region], limits: BlockLimits, out: Pointer, value: float) -> None:
    """Kernel: store a number to all elements of the regions of this PE."""
    for group in rounds(parts, limits):
        for block in group:
            with tl.scratch():
                result = tl.full(block.shape, value, out.dtype)
                tl.store(out + block.starts[0], result, _descriptor(block, 0, block.shape))


def _in(value: Value, dtype: DType) -> Value:
    return value if value.dtype == dtype else value.to(dtype)


def _loadings(
    group: Sequence[MatrixBlock], tensors: Sequence[tuple[int, Pointer]]
) -> list[list[tl.PendingValue]]:
    """The loads of all blocks. What several of them repeat, such as a row of a bias, is loaded
    once: all PEs load it from one slice.
    """
    repeated: dict[tuple[int, int, tuple[int, int]], tl.PendingValue] = {}

    def loading(block: MatrixBlock, tensor: int, pointer: Pointer) -> tl.PendingValue:
        if all(block.strides[tensor]):
            return _loading(block, tensor, pointer)
        key = (tensor, block.starts[tensor], block.shape)
        if key not in repeated:
            repeated[key] = _loading(block, tensor, pointer)
        return repeated[key]

    return [[loading(block, *each) for each in tensors] for block in group]


def _loading(block: MatrixBlock, tensor: int, pointer: Pointer) -> tl.PendingValue:
    by_row, by_column = block.strides[tensor]
    # Along an axis where it is repeated, a tensor has one element.
    shape = (block.shape[0] if by_row else 1, block.shape[1] if by_column else 1)
    return tl.load_async(pointer + block.starts[tensor], shape, _descriptor(block, tensor, shape))


def _storing(block: MatrixBlock, result: Value, out: Pointer) -> tl.PendingResult:
    if result.shape != block.shape:
        # No operand has all elements of the block.
        result = tl.where(tl.full(block.shape, 1, tl.int1), result, result)
    return tl.store_async(out + block.starts[0], result, _descriptor(block, 0, block.shape))


def _descriptor(block: MatrixBlock, tensor: int, shape: tuple[int, int]) -> tuple[int, int] | None:
    by_row, by_column = block.strides[tensor]
    if shape[0] > 1 and shape[1] > 1:
        return (by_row, by_column)
    if shape[0] > 1:
        return (by_row, 1)
    return (1, by_column) if by_column > 1 else None
