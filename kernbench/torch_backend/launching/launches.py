"""Launches of operators: results and operands as windows, the partition, the kernel."""

from collections.abc import Callable, Sequence
from math import prod

import torch

from kernbench.torch_backend.runtime.element_types import hardware_type, moved_as
from kernbench.torch_backend.runtime.storages import storages
from runtime.core.dtypes import DType
from runtime.core.requests import PerPe
from runtime.device.kernels import copies
from runtime.device.kernels import pointwise as kernels
from runtime.device.kernels.bounds import IndexBounds
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.launches.launch import launch_on
from runtime.device.launches.partition import own_parts
from runtime.device.launches.strided_window import StridedWindow
from runtime.device.regions.blocks import BlockLimits
from runtime.device.regions.regions import Pe, Region
from runtime.language.value import Pointer

_ALIGNMENT_BYTES = 2048
"""Scratch that the alignment of the values of a block may take."""
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
    limits = _limits_of(target, read)
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
    """Compute `function` for each (result, operands) in one launch."""
    jobs: dict[Pe, list[kernels.PointwiseJob]] = {}
    used: list[StridedWindow] = []
    for out, operands in results:
        if not out.numel():
            continue
        target, read = window_of(out), [window_of(each) for each in operands]
        limits = _limits_of(target, read)
        for pe, (parts, (pointer, *others)) in _own_parts(target, read).items():
            jobs.setdefault(pe, []).append(
                kernels.PointwiseJob(parts, limits, pointer, tuple(others))
            )
        used += [target, *read]
    if jobs:
        given = PerPe({pe: tuple(each) for pe, each in sorted(jobs.items())})
        arguments = (function, hardware_type(dtype), given)
        launched(name, kernels.pointwise_each, arguments, used, list(jobs))


def launch_updates(
    name: str,
    function: kernels.Update,
    rows: Sequence[Sequence[torch.Tensor]],
    written: tuple[int, ...],
    dtype: torch.dtype,
) -> None:
    """Compute `function` of the tensors of each row in one launch, and write its results to those
    with the numbers `written`. All have the elements and strides of the first one, or one element.
    """
    jobs: dict[Pe, list[kernels.UpdateJob]] = {}
    used: list[StridedWindow] = []
    for row in rows:
        if not row[0].numel():
            continue
        windows = [window_of(each) for each in row]
        limits = _limits_of(windows[0], [*windows, *(windows[each] for each in written)])
        for pe, (parts, pointers) in _own_parts(windows[0], windows[1:]).items():
            jobs.setdefault(pe, []).append(kernels.UpdateJob(parts, limits, pointers))
        used += windows
    if jobs:
        given = PerPe({pe: tuple(each) for pe, each in sorted(jobs.items())})
        arguments = (function, hardware_type(dtype), given, written)
        launched(name, kernels.updated, arguments, used, list(jobs))


def _limits_of(target: StridedWindow, read: Sequence[StridedWindow]) -> BlockLimits:
    # The operands and the result of a block; one more where the result is repeated.
    sizes = [each.window.itemsize for each in read]
    most = most_elements(sum(sizes) + 2 * target.window.itemsize + 1)
    repeated = sum(prod(each.shape) < prod(target.shape) for each in read)
    return BlockLimits(most, _block_elements(target, most), longest_kept(repeated))


def _block_elements(target: StridedWindow, most: int) -> int:
    """A part of the elements of a PE, so that loads, the vector engine and stores overlap."""
    share = prod(target.shape) // max(1, len(target.window.shards))
    return max(min(most, _LEAST_ELEMENTS), min(most, share) // _BLOCKS)


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
    most = most_elements(2 * read.window.itemsize + 3 * target.window.itemsize + 1)
    return BlockLimits(most, _block_elements(target, most), most)


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
    limits = BlockLimits(most, most, most)
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


def most_elements(nbytes: int) -> int:
    """The elements of a block if each takes `nbytes` bytes of scratch."""
    return max(1, (storages().state.topology.kernel_scratch_bytes - _ALIGNMENT_BYTES) // nbytes)
