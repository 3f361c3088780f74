"""Launches of operators: results and operands as windows, the partition, the kernel."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from math import prod

import torch

from kernbench.torch_backend.runtime.element_types import hardware_type, moved_as
from kernbench.torch_backend.runtime.storages import storages
from runtime.core.dtypes import DType
from runtime.core.requests import PerPe
from runtime.device.kernels import copies
from runtime.device.kernels import pointwise as kernels
from runtime.device.kernels.block_access import REPEATED_BYTES
from runtime.device.kernels.bounds import IndexBounds
from runtime.device.kernels.streamed import SIDE_BY_SIDE
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.launches.launch import launch_on
from runtime.device.launches.partition import own_parts
from runtime.device.launches.strided_window import StridedWindow
from runtime.device.regions.blocks import BlockLimits
from runtime.device.regions.regions import Pe, Region
from runtime.language.value import Pointer

_ALIGNMENT_BYTES = 2048
"""Scratch that the alignment of the values of a block may take."""
_GAP_BYTES = 1 << 15
"""Scratch that the alignment of the values of a stream may take."""
_BLOCKS, _LEAST_ELEMENTS = 8, 4096
"""The blocks of a PE, if they have as many elements."""


def window_of(tensor: torch.Tensor, dtype: DType | None = None) -> StridedWindow:
    """The memory of a tensor, in its own element type or in another one of its size."""
    return storages().window(tensor, dtype or hardware_type(tensor.dtype))


def launch_pointwise(
    name: str,
    function: kernels.Function,
    out: torch.Tensor,
    operands: Sequence[torch.Tensor],
    dtype: torch.dtype,
    bounds: IndexBounds | None = None,
) -> None:
    """Compute `function` of operands, converted to `dtype`, on the PEs of `out`. With `bounds`, the
    first operand has indices.
    """
    if not out.numel():
        return
    target = window_of(out)
    read = [window_of(each) for each in operands]
    inner = hardware_type(dtype)
    limits = _limits(target, _stage_bytes(target, read), read)
    own = _own_parts(target, read)
    arguments = (
        *(function, inner, PerPe({pe: parts for pe, (parts, _) in own.items()}), limits),
        PerPe({pe: pointer for pe, (_, (pointer, *_)) in own.items()}),
        PerPe({pe: pointers[1:] for pe, (_, pointers) in own.items()}),
        None if bounds is None else storages().reported(bounds),
    )
    launched(name, kernels.pointwise, arguments, [target, *read], list(own))


def _own_parts(
    target: StridedWindow, read: Sequence[StridedWindow]
) -> dict[Pe, tuple[tuple[Region, ...], tuple[Pointer, ...]]]:
    """The regions of each PE, and the pointers of all tensors from which their starts count."""
    pointers = [*map(pointer_of, (target, *read))]
    return {
        pe: (parts, tuple([each + start for each, start in zip(pointers, starts, strict=True)]))
        for pe, (parts, starts) in own_parts(target, read).items()
    }


def launch_pointwise_each(
    name: str,
    function: kernels.Function,
    results: Sequence[tuple[torch.Tensor, Sequence[torch.Tensor]]],
    dtype: torch.dtype,
) -> None:
    """Compute `function` for each (result, operands), in one launch if no operand is the result of
    another one.
    """
    rows = [
        [window_of(each) for each in (out, *operands)] for out, operands in results if out.numel()
    ]
    for alike in _independent(rows, (0,)):
        jobs: dict[Pe, list[kernels.PointwiseJob]] = {}
        for target, *read in alike:
            limits = _limits(target, _stage_bytes(target, read), read)
            for pe, (parts, (pointer, *others)) in _own_parts(target, read).items():
                job = kernels.PointwiseJob(parts, limits, pointer, tuple(others))
                jobs.setdefault(pe, []).append(job)
        given = PerPe({pe: tuple(each) for pe, each in sorted(jobs.items())})
        arguments = (function, hardware_type(dtype), given)
        launched(name, kernels.pointwise_each, arguments, [*chain(*alike)], list(jobs))


def launch_updates(
    name: str,
    function: kernels.Update,
    rows: Sequence[Sequence[torch.Tensor]],
    written: tuple[int, ...],
    dtype: torch.dtype,
    factors: kernels.Factors | None = None,
) -> None:
    """Compute `function` of the tensors of each row, and write its results to those with the
    numbers `written`; in one launch if no row has tensors that another one writes. All tensors of a
    row have the elements and strides of its first one, or one element.
    """
    given = [[window_of(each) for each in row] for row in rows if row[0].numel()]
    for alike in _independent(given, written):
        jobs: dict[Pe, list[kernels.UpdateJob]] = {}
        for windows in alike:
            nbytes = sum(
                kernels.update_slots(number, written) * each.window.itemsize
                for number, each in enumerate(windows)
            )
            limits = _limits(windows[0], nbytes, windows)
            for pe, (parts, pointers) in _own_parts(windows[0], windows[1:]).items():
                jobs.setdefault(pe, []).append(kernels.UpdateJob(parts, limits, pointers))
        shared = PerPe({pe: tuple(each) for pe, each in sorted(jobs.items())})
        arguments = (function, hardware_type(dtype), shared, written, factors)
        launched(name, kernels.updated, arguments, [*chain(*alike)], list(jobs))


def _independent(
    rows: Sequence[list[StridedWindow]], written: Sequence[int]
) -> Iterator[list[list[StridedWindow]]]:
    """The rows in groups, in which none has memory that an earlier one writes at the numbers
    `written`: the blocks of a group are one stream.
    """
    group, written_spans = list[list[StridedWindow]](), _Spans()
    for row in rows:
        if any(written_spans.meets(each.window) for each in row):
            yield group
            group, written_spans = [], _Spans()
        group.append(row)
        for number in written:
            written_spans.add(row[number].window)
    if group:
        yield group


class _Spans:
    """Spans of addresses in storages."""

    def __init__(self) -> None:
        self._of_storages: dict[int, list[tuple[int, int]]] = {}

    def add(self, window: DeviceTensor) -> None:
        """Add the span of a window."""
        span = window.address, window.address + window.nbytes
        spans = self._of_storages.setdefault(window.storage.address, [span])
        # In front, the span of all.
        spans[0] = min(spans[0][0], span[0]), max(spans[0][1], span[1])
        spans.append(span)

    def meets(self, window: DeviceTensor) -> bool:
        """Whether a window shares addresses with one of them."""
        start, end = window.address, window.address + window.nbytes
        whole, *spans = self._of_storages.get(window.storage.address, [(0, 0)])
        # Parts of a storage mostly follow one another, so few are compared with all others.
        return (
            start < whole[1]
            and whole[0] < end
            and any(start < last and first < end for first, last in spans)
        )


def _stage_bytes(target: StridedWindow, read: Sequence[StridedWindow]) -> int:
    """Scratch for each element of a block: operands that are loaded ahead, two results, a mask."""
    slots = SIDE_BY_SIDE.slots(0, SIDE_BY_SIDE.behind(0))
    return slots * sum(each.window.itemsize for each in read) + 2 * target.window.itemsize + 1


def _limits(target: StridedWindow, nbytes: int, read: Sequence[StridedWindow]) -> BlockLimits:
    """The limits of blocks which take as many bytes of scratch for each element."""
    repeated = sum(prod(each.shape) < prod(target.shape) for each in read)
    most = most_elements(nbytes, beside=repeated * REPEATED_BYTES + _GAP_BYTES)
    return BlockLimits(_block_elements(target, most), longest_kept(repeated))


def _block_elements(target: StridedWindow, most: int) -> int:
    """A part of the elements of a PE, so that loads, the vector engine and stores overlap."""
    share = prod(target.shape) // max(1, len(target.window.shards))
    return min(most, max(_LEAST_ELEMENTS, share // _BLOCKS))


def launch_copy(name: str, out: torch.Tensor, source: torch.Tensor) -> None:
    """Copy `source`, broadcast to the shape of `out`, with conversion between their types."""
    if not out.numel():
        return
    out, source = _moved_elements(out, source)
    target, read = _copied_windows(out, source)
    if target.is_contiguous and read.is_contiguous and target.shape == read.shape:
        # The low level has a kernel without a partition into regions.
        target.window.copy_(read.window)
        return
    own = _own_parts(target, [read])
    arguments = (
        PerPe({pe: parts for pe, (parts, _) in own.items()}),
        _copy_limits(target, read),
        *(PerPe({pe: pointers[each] for pe, (_, pointers) in own.items()}) for each in range(2)),
    )
    launched(name, copies.copied, arguments, [target, read], list(own))


def launch_copies(name: str, pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Copy, for each (target, source), as `launch_copy` does, in one launch."""
    jobs: dict[Pe, list[copies.CopyJob]] = {}
    used: list[StridedWindow] = []
    for out, source in pairs:
        if not out.numel():
            continue
        target, read = _copied_windows(*_moved_elements(out, source))
        limits = _copy_limits(target, read)
        for pe, (parts, pointers) in _own_parts(target, [read]).items():
            jobs.setdefault(pe, []).append(copies.CopyJob(parts, limits, *pointers))
        used += [target, read]
    if jobs:
        given = PerPe({pe: tuple(each) for pe, each in sorted(jobs.items())})
        launched(name, copies.copied_each, (given,), used, list(jobs))


def _moved_elements(out: torch.Tensor, source: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both tensors; complex numbers of 16 bytes, which no DMA moves, as pairs of real ones."""
    if out.dtype == source.dtype and moved_as(out.dtype) is None:
        return torch.view_as_real(out), torch.view_as_real(source)
    return out, source


def _copied_windows(out: torch.Tensor, source: torch.Tensor) -> tuple[StridedWindow, StridedWindow]:
    # Elements of one type are copied bit by bit, also those with which the engines do not compute.
    same = moved_as(out.dtype) if out.dtype == source.dtype else None
    return window_of(out, same), window_of(source, same)


def _copy_limits(target: StridedWindow, read: StridedWindow) -> BlockLimits:
    # What is copied is in the scratch until it is stored.
    slots = SIDE_BY_SIDE.slots(0, SIDE_BY_SIDE.behind(1))
    return _limits(target, slots * read.window.itemsize + 2 * target.window.itemsize + 1, [read])


def launch_fill(out: torch.Tensor, value: float) -> None:
    """Write one number to all elements."""
    if not out.numel():
        return
    target = window_of(out)
    if target.is_contiguous:
        target.window.fill_(value)
        return
    own = _own_parts(target, [])
    most = most_elements(target.window.itemsize)
    limits = BlockLimits(most, most)
    parts = PerPe({pe: each for pe, (each, _) in own.items()})
    pointer = PerPe({pe: each for pe, (_, (each,)) in own.items()})
    launched("fill_", copies.filled, (parts, limits, pointer, value), [target], list(own))


def launched(
    name: str,
    kernel: Callable[..., None],
    arguments: tuple[object, ...],
    tensors: Sequence[StridedWindow],
    pes: Sequence[Pe],
) -> None:
    """Queue a kernel without messages on PEs; `tensors` are all that it reads and writes."""
    used: list[DeviceTensor] = [each.window for each in tensors]
    launch_on(name, kernel, arguments, used, sorted(pes), local=True)


def pointer_of(tensor: StridedWindow) -> Pointer:
    """The virtual address of element 0."""
    return Pointer(tensor.window.address, tensor.window.dtype)


def longest_kept(count: int) -> int:
    """The longest rows or columns of which the registers of the vector engine hold `count`, each in
    two types, with as many intermediate results.
    """
    math = storages().state.topology.pe.math
    return math.lanes * max(1, math.registers // (4 * max(1, count)))


def most_elements(nbytes: int, *, beside: int = _ALIGNMENT_BYTES) -> int:
    """The elements of a block if each takes `nbytes` bytes of scratch, `beside` other values."""
    return max(1, (storages().state.topology.kernel_scratch_bytes - beside) // nbytes)
