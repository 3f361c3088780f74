"""All-to-all: every rank has a part for every rank.

Equal parts move by the algorithm of the group. Parts of any sizes, that is split sizes or lists of
tensors, always move by `pairwise`: between every two ranks directly, since no other rank has the
size of a part. Sender and receiver of a part state its size; if the sizes differ, the receiver
raises a `KernelError` that names both.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from runtime.ccl.config import PAIRWISE
from runtime.core.requests import PerPe
from runtime.device.collectives.launching import CollectiveCall, member
from runtime.device.collectives.operands import check_pair, check_tensors
from runtime.device.collectives.process_group import Group
from runtime.device.collectives.work import Work
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.movers.movers import (
    dealt,
    is_alike,
    is_window,
    numels,
    parts_on_own_pes,
    pointers,
    pointers_by_rank,
    shard_specs,
    spread,
    writing_movers,
)
from runtime.device.rank.rank_state import ProcessGroup
from runtime.language.value import Pointer
from runtime.model.placement import ShardSpec


class _RankPart(NamedTuple):
    """Consecutive elements of a flat tensor, for one rank or from one."""

    tensor: StoredTensor
    offset_bytes: int
    numel: int


def all_to_all_single(
    output: StoredTensor,
    input: StoredTensor,  # noqa: A002 - PyTorch's name
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Cut `input` along axis 0 and send part r to rank r; the part from rank r is part r of
    `output`.

    Without split sizes the parts are equal, and tensors that are not flat are possible if every PE
    holds its own columns of both. Split sizes are numbers of rows; all ranks pass them, or none.
    `ValueError` for sizes that do not add up to axis 0.
    """
    process_group = member("all_to_all_single", group)
    if process_group is None:
        return None
    check_pair(output, input, "all_to_all_single")
    if not output_split_sizes and not input_split_sizes:
        return _equal_parts(output, input, process_group, async_op=async_op)
    return _exchange_parts(
        "all_to_all_single",
        process_group,
        _rows("output_split_sizes", output_split_sizes, output, process_group.world_size),
        _rows("input_split_sizes", input_split_sizes, input, process_group.world_size),
        async_op=async_op,
    )


def all_to_all(
    output_tensor_list: Sequence[StoredTensor],
    input_tensor_list: Sequence[StoredTensor],
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Send `input_tensor_list[r]` to rank r; `output_tensor_list[r]` gets what rank r sends here; r
    is a rank of the group.

    `ValueError` unless each list has one flat tensor per rank, all of one type.
    """
    process_group = member("all_to_all", group)
    if process_group is None:
        return None
    outputs = check_tensors("output_tensor_list", output_tensor_list, process_group.world_size)
    inputs = check_tensors("input_tensor_list", input_tensor_list, process_group.world_size)
    first = outputs[0].dtype
    for name, tensors in (("output_tensor_list", outputs), ("input_tensor_list", inputs)):
        for index, each in enumerate(tensors):
            if each.dtype != first:
                problem = f"{name}[{index}] has {each.dtype!r}, output_tensor_list[0] has {first!r}"
                raise ValueError(f"Invalid usage of tensors with different dtypes: {problem}")
            _check_flat("all_to_all", f"{name}[{index}]", each)
    return _exchange_parts(
        "all_to_all",
        process_group,
        [_RankPart(each, 0, each.numel()) for each in outputs],
        [_RankPart(each, 0, each.numel()) for each in inputs],
        async_op=async_op,
    )


def _equal_parts(
    output: StoredTensor, source: StoredTensor, process_group: ProcessGroup, *, async_op: bool
) -> Work | None:
    ranks = process_group.world_size
    if output.numel() != source.numel():
        problem = f"the output has shape {output.shape}, the input {source.shape}"
        raise ValueError(
            f"all_to_all_single with equal splits: both tensors must have one number of elements; "
            f"{problem}"
        )
    for tensor in (source, output):
        if not tensor.shape or tensor.shape[0] % ranks:
            problem = f"shape {tensor.shape}, {ranks} ranks"
            raise ValueError(f"Tensor's dim 0 does not divide equally across group size: {problem}")
    movers = _local_movers(output, source, ranks)
    if movers is None:
        movers = _flat_movers(output, source, ranks)
        parts = [
            pointers_by_rank(
                [pointers(each, movers, rank * each.nbytes // ranks) for rank in range(ranks)],
                movers,
            )
            for each in (source, output)
        ]
    else:
        parts = [parts_on_own_pes(each, movers, ranks) for each in (source, output)]
    return CollectiveCall(
        collective="all_to_all_single",
        tensors=[source, output],
        movers=movers,
        operands=(parts[0], numels(movers, source.itemsize), parts[1]),
    ).launch(process_group, async_op=async_op)


def _local_movers(
    output: StoredTensor, source: StoredTensor, ranks: int
) -> tuple[ShardSpec, ...] | None:
    """One part of the shard of every PE, if each has all rows of its columns of both tensors."""
    specs = shard_specs(source)
    whole = all(spec.spans[0] == (0, source.shape[0]) for spec in specs)
    tiled = ranks > 1 and source.layout is not None
    if is_window(source) or is_window(output) or tiled or not whole:
        return None
    if output.shape != source.shape or not is_alike(output, source):
        return None
    return tuple(replace(spec, nbytes=spec.nbytes // ranks) for spec in specs)


def _flat_movers(output: StoredTensor, source: StoredTensor, ranks: int) -> tuple[ShardSpec, ...]:
    """The elements of a part, dealt to the PEs that hold the input."""
    if not (source.is_flat and output.is_flat):
        raise ValueError(
            f"all_to_all_single: shapes {source.shape} and {output.shape}, placed by "
            f"{source.policy} and {output.policy}, cannot be cut into parts where they are; place "
            'both tensors on one PE, with "row_wise", or both alike, with "replicate" or with '
            '"column_wise" and at least two axes; omit `layout`'
        )
    numel, size = source.numel() // ranks, source.itemsize
    if is_window(source) or is_window(output):
        movers = spread(numel, size)
    else:
        # Of replicas the first one is read.
        distinct = {spec.offset_bytes: spec for spec in reversed(shard_specs(source))}
        movers = dealt(numel, size, sorted(distinct.values(), key=_coordinates))
    if writing_movers(movers, [output], numel * size, ranks) is None:
        raise _replicated("all_to_all_single", "output", output)
    return movers


def _exchange_parts(
    called: str,
    process_group: ProcessGroup,
    received: Sequence[_RankPart],
    sent: Sequence[_RankPart],
    *,
    async_op: bool,
) -> Work | None:
    """Queue the exchange of parts of any sizes: part r is for rank r, or from it."""
    own = process_group.rank
    if received[own].numel != sent[own].numel:
        problem = f"of {sent[own].numel} elements and receives {received[own].numel}"
        raise ValueError(f"{called}: rank {process_group.sips[own]} sends itself a part {problem}")
    for part in received:
        if _is_replicated(part.tensor):
            raise _replicated(called, "an output", part.tensor)
    dtype = sent[0].tensor.dtype
    # Both ends of a part deal its elements to the same PEs: they have nothing but its size.
    movers = spread(max(part.numel for part in (*received, *sent)), dtype.itemsize)
    segments = [
        PerPe(
            {
                (mover.cube, mover.pe): tuple(_segment(part, index) for part in parts)
                for index, mover in enumerate(movers)
            }
        )
        for parts in (sent, received)
    ]
    tensors = list(dict.fromkeys(part.tensor for part in (*sent, *received)))
    return CollectiveCall(
        collective="all_to_all",
        called=called,
        tensors=tensors,
        movers=movers,
        operands=tuple(segments),
        algorithm=PAIRWISE,
        operands_text=f"{dtype.name} in parts of given sizes",
    ).launch(process_group, async_op=async_op)


def _segment(part: _RankPart, index: int) -> tuple[Pointer, int]:
    """The elements of a part that the PE with this number moves."""
    size = part.tensor.itemsize
    start = Pointer(part.tensor.address + part.offset_bytes, part.tensor.dtype)
    shares = spread(part.numel, size)
    if index >= len(shares):
        return start, 0
    return start + shares[index].offset_bytes // size, shares[index].nbytes // size


def _rows(
    name: str, sizes: Sequence[int] | None, tensor: StoredTensor, ranks: int
) -> list[_RankPart]:
    """The parts of a flat tensor with these numbers of rows; without sizes, equal parts."""
    _check_flat("all_to_all_single", name.partition("_")[0], tensor)
    rows = tensor.shape[0] if tensor.shape else 0
    if not sizes:
        if rows % ranks:
            problem = f"shape {tensor.shape}, {ranks} ranks"
            raise ValueError(f"Tensor's dim 0 does not divide equally across group size: {problem}")
        sizes = [rows // ranks] * ranks
    if len(sizes) != ranks:
        raise ValueError(
            f"Number of tensor splits not equal to group size: {name} {list(sizes)}, {ranks} ranks"
        )
    if sum(sizes) != rows or min(sizes) < 0:
        raise ValueError(
            f"Split sizes doesn't match total dim 0 size: {name} {list(sizes)}, shape "
            f"{tensor.shape}"
        )
    row = tensor.numel() // rows if rows else 0
    ends = accumulate(sizes)
    return [
        _RankPart(tensor, (end - size) * row * tensor.itemsize, size * row)
        for end, size in zip(ends, sizes, strict=True)
    ]


def _check_flat(called: str, name: str, tensor: StoredTensor) -> None:
    if not tensor.is_flat:
        raise ValueError(
            f"{called}: {name} of shape {tensor.shape}, placed by {tensor.policy}, does not hold "
            'its elements in row-major order; place it on one PE or with "row_wise", without '
            "`layout`"
        )


def _is_replicated(tensor: StoredTensor) -> bool:
    return len({spec.offset_bytes for spec in shard_specs(tensor)}) < len(tensor.shards)


def _replicated(called: str, name: str, tensor: StoredTensor) -> ValueError:
    return ValueError(
        f"{called}: {name} of shape {tensor.shape} is replicated, {tensor.policy}, and not every "
        'replica would be written; place it on one PE or with "row_wise"'
    )


def _coordinates(spec: ShardSpec) -> tuple[int, int]:
    return spec.cube, spec.pe
