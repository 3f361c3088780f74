"""Operators that move elements: copies on the device, between device and host, and fills;
concatenations, turned axes and triangles.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from kernbench.torch_backend.aten.attempts import refuse_read
from kernbench.torch_backend.aten.operators import DEVICE, operator
from kernbench.torch_backend.launching.launches import launch_copies, launch_copy, launch_fill
from kernbench.torch_backend.runtime.element_types import COMPUTED
from kernbench.torch_backend.runtime.pytorch_api import from_numpy, negative_view
from kernbench.torch_backend.runtime.storages import storages
from runtime.device.launches.device_tensor import DeviceTensor


@operator("_copy_from", types=None)
def copy_from(
    source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False
) -> torch.Tensor:
    """`target.copy_(source)`, of which at least one is on the device. A copy to the device takes
    the bytes of the moment of the call and does not wait.
    """
    del non_blocking
    if source.is_conj() or source.is_neg():
        target.copy_(_resolved(source))
    elif source.device.type == target.device.type:
        _copied_on_device(source, target)
        _note_copy(source, target)
    elif target.device.type == DEVICE:
        _write(source, target)
    else:
        target.copy_(read(source, "a copy to the CPU"))
    return target


def _note_copy(source: torch.Tensor, target: torch.Tensor) -> None:
    known = storages().integers
    if known is not None:
        elements = known.elements(source)
        # A copy, since both may be windows of one storage.
        copy = elements.clone() if isinstance(elements, torch.Tensor) else elements
        known.write(target, copy)


@operator("_copy_from_and_resize", types=None)
def _copy_from_and_resize(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    target.resize_(source.shape)
    return copy_from(source, target)


@operator("_local_scalar_dense", types=None)
def _local_scalar_dense(x: torch.Tensor) -> Any:
    # Called by `item`, `tolist` of a number, `float`, `bool` and `if` as well.
    refuse_read()
    return read(x, "item()").item()


@operator("fill_.Scalar", types=None)
def _fill(x: torch.Tensor, value: float) -> torch.Tensor:
    # The engine takes numbers as float64, which does not have all integers beyond 2^53.
    is_long = x.dtype == torch.int64 and abs(value) > 1 << 53
    if _is_moved_only(x.dtype) or (is_long and not x.is_contiguous()):
        return copy_from(torch.full((), value, dtype=x.dtype), x)
    launch_fill(x, torch.tensor(value, dtype=x.dtype).item())
    return x


@operator("fill_.Tensor", types=None)
def _fill_by_tensor(x: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return copy_from(value, x) if value.device.type == DEVICE else _fill(x, value.item())


@operator("zero_", types=None)
def _zero(x: torch.Tensor) -> torch.Tensor:
    return _fill(x, 0)


def read(tensor: torch.Tensor, reader: str) -> torch.Tensor:
    """A copy of a tensor of the device on the host, in one read that waits for the work before it.
    A tensor with gaps in memory is copied to one without on the device before. `NoDataError` names
    the `reader` of elements that a run without data does not have.
    """
    if not tensor.numel():
        return torch.empty(tensor.shape, dtype=tensor.dtype)
    memory = _bytes_of(tensor)
    if memory.numel() > 4 * tensor.numel() * tensor.itemsize:
        return read(tensor.contiguous(), reader)
    data = np.array(memory.numpy())
    known = storages().integers
    if known is not None:
        # After the read, which waits for what other ranks deliver.
        return known.read(tensor, reader, _described(tensor)).clone()
    elements = from_numpy(data).view(tensor.dtype)
    return elements.as_strided(tensor.shape, tensor.stride()).clone()


def _described(tensor: torch.Tensor) -> str:
    return f"an element of a tensor of {tensor.dtype} with shape {list(tensor.shape)}"


def _write(source: torch.Tensor, target: torch.Tensor) -> None:
    if not target.numel():
        return
    typed = source.detach().to(target.dtype)
    if not target.is_contiguous() or typed.shape != target.shape:
        # The bytes go to a tensor without gaps, from there a kernel deals them.
        uploaded = _uploaded(typed)
        _copied_on_device(uploaded, target)
        _note_copy(uploaded, target)
        return
    _store(typed, target)


def _uploaded(source: torch.Tensor) -> torch.Tensor:
    new = torch.empty(source.shape, dtype=source.dtype, device=DEVICE)
    _store(source, new)
    return new


def _store(source: torch.Tensor, target: torch.Tensor) -> None:
    if source.numel():
        array = source.contiguous().view(-1).view(torch.uint8).numpy()
        _bytes_of(target)[...] = array
        known = storages().integers
        if known is not None:
            known.write(target, source)


def _bytes_of(tensor: torch.Tensor) -> DeviceTensor:
    """The bytes from the first to the last element of a tensor."""
    return storages().bytes_of(tensor)


def _copied_on_device(source: torch.Tensor, target: torch.Tensor) -> None:
    types = {source.dtype, target.dtype}
    if len(types) > 1 and any(map(_is_moved_only, types)):
        _write(read(source, "a conversion on the CPU"), target)
    else:
        launch_copy("copy_", target, source)


def _resolved(source: torch.Tensor) -> torch.Tensor:
    """The elements of a view of conjugates or negatives, on the host."""
    stored, signs = source, []
    if stored.is_conj():
        stored, signs = stored.conj(), [torch.Tensor.conj_physical]
    if stored.is_neg():
        stored, signs = negative_view(stored), [*signs, torch.Tensor.neg]
    elements = stored.cpu()
    for each in signs:
        elements = each(elements)
    return elements


def _is_moved_only(dtype: torch.dtype) -> bool:
    """Whether the engines do not compute with the type."""
    return dtype not in COMPUTED


@operator("cat.out", types=None)
def _cat(tensors: Sequence[torch.Tensor], dim: int = 0, *, out: torch.Tensor) -> torch.Tensor:
    # An empty vector concatenates with any shape, as PyTorch has it.
    parts = [each for each in tensors if each.shape != (0,)]
    if not parts:
        return out.resize_(0)
    axis = dim % parts[0].dim()
    shape = list(parts[0].shape)
    shape[axis] = sum(each.shape[axis] for each in parts)
    if list(out.shape) != shape:
        out.resize_(shape)
    if any(each.dtype != out.dtype and {each.dtype, out.dtype} - COMPUTED for each in parts):
        return NotImplemented
    targets = out.split_with_sizes([each.shape[axis] for each in parts], axis)
    launch_copies("cat", list(zip(targets, parts, strict=True)))
    return out


@operator("flip", types=None)
def _flip(x: torch.Tensor, dims: list[int]) -> torch.Tensor:
    for dim in dims:
        numbers = torch.arange(x.shape[dim] - 1, -1, -1, device=x.device) if x.dim() else None
        x = x.clone() if numbers is None else x.index_select(dim, numbers)
    return x if dims else x.clone()


@operator("roll", types=None)
def _roll(x: torch.Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> torch.Tensor:
    if not x.numel():
        return x.clone()
    if not dims:
        return _roll(x.flatten(), shifts, [0]).view(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        cut = -shift % x.shape[dim]
        rest = x.shape[dim] - cut
        x = torch.cat([x.narrow(dim, cut, rest), x.narrow(dim, 0, cut)], dim)
    return x


def _triangle(name: str, *, lower: bool) -> None:
    @operator(f"{name}.out")
    def triangle(x: torch.Tensor, diagonal: int = 0, *, out: torch.Tensor) -> torch.Tensor:
        rows = torch.arange(x.shape[-2], device=x.device, dtype=torch.int32).unsqueeze(1)
        columns = torch.arange(x.shape[-1], device=x.device, dtype=torch.int32)
        distance = columns - rows
        kept = distance <= diagonal if lower else distance >= diagonal
        zero = torch.zeros((), dtype=x.dtype)
        return torch.where(kept, x, zero.to(x.device), out=out)

    del triangle


_triangle("tril", lower=True)
_triangle("triu", lower=False)
