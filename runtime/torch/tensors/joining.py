"""Joining and cutting tensors: `cat`, `stack`, and functions for the methods that make windows."""

from collections.abc import Sequence
from math import prod

from runtime.core.requests import PerPe
from runtime.device.kernels import copies
from runtime.device.launches.launch import launch_on
from runtime.device.memory.sizes import axis_of
from runtime.device.rank.rank_state import running_rank
from runtime.language.value import Pointer
from runtime.torch.tensors.creation_options import Options
from runtime.torch.tensors.tensor import Tensor


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors, of one type and of one shape but for axis `dim`, one behind the other along that
    axis: a new tensor in the default placement, copied on the device.
    """
    parts = _checked("cat", tensors)
    axis, first = axis_of(dim, len(parts[0].shape)), parts[0]
    if not first.shape:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    for index, part in enumerate(parts):
        if _without(part.shape, axis) != _without(first.shape, axis):
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {axis}. Expected {first.shape} "
                f"but got {part.shape} for tensor number {index} in the list."
            )
    total = sum(part.shape[axis] for part in parts)
    shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
    joined = Options(first.dtype, None).new(shape, first.dtype)
    start = 0
    for part in parts:
        _copy_columns(part.contiguous(), joined, axis, start)
        start += part.shape[axis]
    return joined


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape along a new axis `dim`."""
    parts = _checked("stack", tensors)
    axis = axis_of(dim, len(parts[0].shape) + 1)
    for index, part in enumerate(parts):
        if part.shape != parts[0].shape:
            problem = f"got {parts[0].shape} at entry 0 and {part.shape} at entry {index}"
            raise RuntimeError(f"stack expects each tensor to be equal size, but {problem}")
    return cat([part.contiguous().unsqueeze(axis) for part in parts], axis)


def split(
    tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """`tensor.split`."""
    return tensor.split(split_size_or_sections, dim)


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:  # noqa: A002 - PyTorch's name
    """`input.chunk`."""
    return input.chunk(chunks, dim)


def _copy_columns(source: Tensor, target: Tensor, axis: int, start: int) -> None:
    """Copy `source` to `target` from the index `start` along an axis on.

    Both are seen as matrices: the rows are the indices before the axis, and every PE of the target
    copies an equal share of them.
    """
    inner = prod(source.shape[axis + 1 :])
    rows, columns = prod(source.shape[:axis]), source.shape[axis] * inner
    if rows == 1 or not source.numel():
        target.view(-1).narrow(0, start * inner, source.numel()).copy_(source.view(-1))
        return
    pes = [(shard.spec.cube, shard.spec.pe) for shard in target.shards]
    share = -(-rows // len(pes))
    parts = {
        pe: (min(address * share, rows), min((address + 1) * share, rows))
        for address, pe in enumerate(pes)
    }
    address = Pointer(target.address, target.dtype) + start * inner
    piece = max(1, running_rank().topology.kernel_scratch_bytes // source.itemsize)
    launch_on(
        "cat",
        copies.copy_columns,
        (
            Pointer(source.address, source.dtype),
            address,
            columns,
            target.shape[axis] * inner,
            PerPe(parts),
            piece,
        ),
        (source, target),
        pes,
    )


def _checked(function: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    parts = list(tensors)
    if not parts:
        raise RuntimeError(f"{function}(): expected a non-empty list of Tensors")
    for index, part in enumerate(parts):
        if not isinstance(part, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance] - user code is not type-checked
            problem = f"must be Tensor, not {type(part).__name__}"
            raise TypeError(f"{function}(): element {index} of argument 'tensors' {problem}")
        if part.dtype != parts[0].dtype:
            raise RuntimeError(
                f"{function}(): tensors have types {parts[0].dtype!r} and {part.dtype!r}; convert "
                "with x.to(dtype)"
            )
    return parts


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])
