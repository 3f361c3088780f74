"""The boundaries of a tensor parallel region, as Megatron names them.

    function                 forward                          its backward
    copy_to_tp_region        the tensor itself                reduce_from_tp_region
    reduce_from_tp_region    the sum over the ranks           copy_to_tp_region
    scatter_to_tp_region     the own part of the last axis    gather_from_tp_region
    gather_from_tp_region    the parts of all ranks           scatter_to_tp_region

Kernbench has no autograd: a backward pass calls the function of the last column by hand.
"""

from math import prod

from runtime.device.kernels.copies import BlockCopy
from runtime.device.launches.block_copy import flat_copy, launch_copies
from runtime.device.products.product_operands import MatrixPart, parts_of
from runtime.device.regions.regions import Pe
from runtime.language.value import Pointer
from runtime.torch import distributed as dist
from runtime.torch.tensors.creation import empty
from runtime.torch.tensors.tensor import Tensor
from runtime.tp.parallel_state import (
    get_tensor_model_parallel_group,
    get_tensor_model_parallel_rank,
    get_tensor_model_parallel_world_size,
)


def copy_to_tp_region(x: Tensor) -> Tensor:
    """`x` itself: every rank of the group already has it."""
    get_tensor_model_parallel_group()
    return x


def reduce_from_tp_region(x: Tensor) -> Tensor:
    """`x`, whose elements are replaced by their sums over the ranks of the group, with the same
    bits on every rank.
    """
    dist.all_reduce(x, group=get_tensor_model_parallel_group())
    return x


def scatter_to_tp_region(x: Tensor) -> Tensor:
    """The part of the last axis that belongs to this rank, as a new tensor; `ValueError` if the
    axis does not divide by the ranks.
    """
    rank, size = get_tensor_model_parallel_rank(), get_tensor_model_parallel_world_size()
    width = divided(_last_axis(x), size, "the last axis")
    whole = _flat(x)
    out = empty((*x.shape[:-1], width), dtype=x.dtype)
    source = Pointer(whole.address, whole.dtype) + rank * width
    copies: dict[Pe, list[BlockCopy]] = {}
    for part in _parts(out):
        copies.setdefault(part.pes[0], []).append(
            _copy(part, source, x.shape[-1], part.columns, out, 0)
        )
    _launch("scatter", copies, [whole, out])
    return out


def gather_from_tp_region(x: Tensor) -> Tensor:
    """The parts of all ranks of the group, joined along the last axis, as a new tensor."""
    size, width = get_tensor_model_parallel_world_size(), _last_axis(x)
    gathered = [empty(x.shape, dtype=x.dtype) for _ in range(size)]
    own = x
    if [shard.spec for shard in x.shards] != [shard.spec for shard in gathered[0].shards]:
        # An all-gather exchanges shards with equal places.
        own = empty(x.shape, dtype=x.dtype)
        flat = _flat(x)
        start = Pointer(flat.address, flat.dtype)
        copies: dict[Pe, list[BlockCopy]] = {}
        for part in _parts(own):
            copies.setdefault(part.pes[0], []).append(
                _copy(part, start, width, part.columns, own, 0)
            )
        _launch("place", copies, [flat, own])
    dist.all_gather(gathered, own, group=get_tensor_model_parallel_group())
    out = empty((*x.shape[:-1], size * width), dtype=x.dtype)
    joins: dict[Pe, list[BlockCopy]] = {}
    for part in _parts(out):
        for rank, each in enumerate(gathered):
            # The columns of the result that come from this rank.
            start, stop = (
                max(part.columns[0], rank * width),
                min(part.columns[1], (rank + 1) * width),
            )
            if start < stop:
                source = Pointer(each.address, each.dtype) - rank * width
                joins.setdefault(part.pes[0], []).append(
                    _copy(part, source, width, (start, stop), out, start - part.columns[0])
                )
    _launch("join", joins, [out, *gathered])
    return out


def divided(length: int, size: int, what: str) -> int:
    """`length` / `size`; `ValueError` with both numbers if there is a remainder."""
    if length % size:
        raise ValueError(
            f"{what} ({length}) is not divisible by the tensor model parallel size ({size})"
        )
    return length // size


def _last_axis(x: Tensor) -> int:
    if not x.shape:
        raise ValueError("a tensor without axes cannot be divided over ranks")
    return x.shape[-1]


def _matrix(x: Tensor) -> tuple[int, int]:
    return prod(x.shape[:-1]), x.shape[-1]


def _flat(x: Tensor) -> Tensor:
    return x if x.is_flat else flat_copy(x, _matrix(x))


def _parts(x: Tensor) -> tuple[MatrixPart, ...]:
    parts = parts_of(x, _matrix(x))
    assert parts is not None, "a new tensor has whole rows on each PE, or parts of one"
    return parts


def _copy(
    part: MatrixPart,
    source: Pointer,
    source_pitch: int,
    columns: tuple[int, int],
    target: Tensor,
    first: int,
) -> BlockCopy:
    """The rows of a part: from `columns` of a flat matrix to the part, from column `first` on."""
    return BlockCopy(
        rows=part.rows[1] - part.rows[0],
        columns=columns[1] - columns[0],
        source=source + part.rows[0] * source_pitch + columns[0],
        source_pitch=source_pitch,
        target=Pointer(target.address, target.dtype) + part.offset + first,
        target_pitch=part.pitch,
    )


def _launch(name: str, copies: dict[Pe, list[BlockCopy]], tensors: list[Tensor]) -> None:
    # A tensor without elements has nothing to copy.
    if copies:
        launch_copies(name, copies, tensors)
