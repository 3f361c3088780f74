"""The collectives: checks of the operands, and the launch of the algorithm's kernel on the PEs that
hold the tensors.

A collective is a command of the rank's communication stream, and the call returns at once. It waits
for the current stream, and unless it is called with `async_op=True`, the current stream waits for
it. A later access to one of its tensors waits for it, and the collectives of a rank run one after
the other, in the order of the calls. Every rank must make the same calls in the same order, with
the same shapes, types and placements. Each PE exchanges its shards with the PEs that have the same
coordinates in other SIPs.

Signatures are PyTorch's. `group` is a result of `new_group`, by default the default group. Ranks in
arguments are global ranks; those of arguments whose names begin with `group_` are ranks of the
group. On a rank outside the group a call has no effect. With `async_op=True` a call returns a
`Work`, else None.

The slots of a call carry its signature, such as `world #3: all_reduce(...)`. A rank that receives a
slot with another signature under the same number raises `CollectiveMismatchError`.
"""

from collections.abc import Sequence
from warnings import warn

from runtime.ccl.algorithm_module import Kernel, algorithms_with, complete, kernel_of
from runtime.ccl.call_signature import call_signature
from runtime.ccl.config import AUTO
from runtime.ccl.reduction import ReduceOp
from runtime.ccl.ring_allocator import QueueTableSpec
from runtime.core.requests import PerPe
from runtime.model.placement import DPPolicy
from runtime.torch.creation import empty
from runtime.torch.distributed.operands import (
    check_equal_splits,
    check_list,
    check_op,
    check_parts,
    check_placement,
    check_split,
    check_tensor,
    placement_text,
    rank_in_group,
)
from runtime.torch.distributed.process_group import Group, install, resolve_group
from runtime.torch.distributed.work import Work, communication_stream
from runtime.torch.ops import launch_on, shard_pointers
from runtime.torch.rank_state import ProcessGroup, running_rank
from runtime.torch.tensor import Tensor

_BARRIER_BYTES = 4


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Replace the elements of `tensor` by the combined elements of all ranks, with the same bits on
    every rank.

    An algorithm combines corresponding elements of all ranks. `intercube` also combines the shards
    of all cubes of a rank, and `hierarchical` those of all its PEs. `ValueError` if the algorithm
    does not support the placement, `TypeError` for the average of integers.
    """
    process_group = _member("all_reduce", group)
    if process_group is None:
        return None
    check_tensor("tensor", tensor)
    check_op("all_reduce", op, tensor)
    operands = (shard_pointers(tensor), _shard_numel(tensor), op)
    return _launch(
        process_group, "all_reduce", [tensor], operands, f"op {op.value}", async_op=async_op
    )


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Replace the elements of `tensor` on rank `dst` by the combined elements of all ranks; other
    ranks keep theirs.
    """
    process_group = _member("reduce", group)
    if process_group is None:
        return None
    check_tensor("tensor", tensor)
    root = rank_in_group(process_group, "root", "dst", dst, group_dst)
    check_op("reduce", op, tensor)
    operands = (shard_pointers(tensor), _shard_numel(tensor), op, root)
    return _launch(
        process_group,
        "reduce",
        [tensor],
        operands,
        f"op {op.value}, root {process_group.sips[root]}",
        async_op=async_op,
    )


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Replace the elements of `tensor` on every rank by those of rank `src`."""
    process_group = _member("broadcast", group)
    if process_group is None:
        return None
    check_tensor("tensor", tensor)
    root = rank_in_group(process_group, "root", "src", src, group_src)
    operands = (shard_pointers(tensor), _shard_numel(tensor), root)
    return _launch(
        process_group,
        "broadcast",
        [tensor],
        operands,
        f"root {process_group.sips[root]}",
        async_op=async_op,
    )


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Write the elements of `tensor` of rank r to `tensor_list[r]`, on every rank; r is a rank of
    the group.

    `ValueError` unless the list has one tensor per rank, with the shape, type and placement of
    `tensor`.
    """
    process_group = _member("all_gather", group)
    if process_group is None:
        return None
    check_tensor("tensor", tensor)
    check_list(tensor_list, tensor, process_group.world_size)
    # One argument with a tuple of pointers per PE: the kernel indexes it by rank.
    pointers = [shard_pointers(output) for output in tensor_list]
    outputs = PerPe({pe: tuple(each.values[pe] for each in pointers) for pe in pointers[0].values})
    operands = (shard_pointers(tensor), _shard_numel(tensor), outputs)
    return _launch(process_group, "all_gather", [tensor, *tensor_list], operands, async_op=async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Write the input tensors of all ranks to `output_tensor`, concatenated along axis 0 or stacked
    on a new axis 0.

    The output has `world_size` times the elements. `ValueError` for other sizes, and for a
    placement with which a PE would have to write elements of another PE: one PE, `replicate`, and
    `column_wise` with at least two axes are possible.
    """
    process_group = _member("all_gather_into_tensor", group)
    if process_group is None:
        return None
    _check_pair(output_tensor, input_tensor, "all_gather_into_tensor")
    world_size = process_group.world_size
    if output_tensor.numel() != world_size * input_tensor.numel():
        problem = "output tensor size must be equal to world_size times input tensor size"
        raise ValueError(
            f"{problem}: {output_tensor.numel()} is not {world_size} x {input_tensor.numel()}"
        )
    check_parts("all_gather_into_tensor", output_tensor, input_tensor, world_size)
    operands = (
        shard_pointers(input_tensor),
        _shard_numel(input_tensor),
        shard_pointers(output_tensor),
    )
    return _launch(
        process_group,
        "all_gather_into_tensor",
        [input_tensor, output_tensor],
        operands,
        async_op=async_op,
    )


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,  # noqa: A002 - PyTorch's name
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Combine the input tensors of all ranks and write part r of the result, along axis 0, to
    `output` of rank r.

    The input has `world_size` times the elements, concatenated along axis 0 or stacked on a new
    axis 0. The possible placements are those of `all_gather_into_tensor`.
    """
    process_group = _member("reduce_scatter_tensor", group)
    if process_group is None:
        return None
    _check_pair(output, input, "reduce_scatter_tensor")
    check_op("reduce_scatter_tensor", op, input)
    world_size = process_group.world_size
    if input.numel() != world_size * output.numel():
        problem = "input tensor must be the same size as output size times world size"
        raise ValueError(f"{problem}: {input.numel()} is not {output.numel()} x {world_size}")
    check_parts("reduce_scatter_tensor", input, output, world_size)
    operands = (shard_pointers(input), _shard_numel(output), op, shard_pointers(output))
    return _launch(
        process_group,
        "reduce_scatter_tensor",
        [input, output],
        operands,
        f"op {op.value}",
        async_op=async_op,
    )


def all_to_all_single(
    output: Tensor,
    input: Tensor,  # noqa: A002 - PyTorch's name
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Cut `input` into equal parts along axis 0 and send part r to rank r; the part from rank r is
    part r of `output`.

    `ValueError` if the world size does not divide axis 0, or for split sizes that differ. The
    possible placements are those of `all_gather_into_tensor`.
    """
    process_group = _member("all_to_all_single", group)
    if process_group is None:
        return None
    _check_pair(output, input, "all_to_all_single")
    check_equal_splits("output_split_sizes", output_split_sizes, output, process_group.world_size)
    check_equal_splits("input_split_sizes", input_split_sizes, input, process_group.world_size)
    check_split(output, input, process_group.world_size)
    operands = (
        shard_pointers(input),
        _shard_numel(input) // process_group.world_size,
        shard_pointers(output),
    )
    return _launch(process_group, "all_to_all_single", [input, output], operands, async_op=async_op)


def barrier(
    group: Group = None, async_op: bool = False, device_ids: Sequence[int] | None = None
) -> Work | None:
    """Return when every rank has called it: an all-reduce of one element per PE, through the same
    queues.

    With `async_op=True` it returns a `Work` that completes then. `ValueError` for a device that is
    not the rank's own.
    """
    if device_ids is not None and list(device_ids) != [running_rank().rank]:
        raise ValueError(
            f"barrier on device_ids {list(device_ids)}: this rank has the device "
            f"{running_rank().rank}"
        )
    process_group = _member("barrier", group)
    if process_group is None:
        return None
    # The smallest tensor that the algorithm supports: one element on every PE that has neighbours
    # in its SIP, or on one PE if none has.
    local = _chosen(process_group, "all_reduce", _BARRIER_BYTES)[0].plan.mapping.local
    cubes, pes = (len({coordinates[axis] for coordinates in local}) or 1 for axis in (0, 1))
    tensor = empty(1, dp=DPPolicy(num_cubes=cubes, num_pes=pes))
    operands = (shard_pointers(tensor), _shard_numel(tensor), ReduceOp.SUM)
    work = _launch(process_group, "all_reduce", [tensor], operands, called="barrier", async_op=True)
    assert work is not None
    if async_op:
        return work
    running_rank().device.wait(work.handle)
    return None


def _launch(
    process_group: ProcessGroup,
    collective: str,
    tensors: Sequence[Tensor],
    operands: tuple[object, ...],
    detail: str = "",
    *,
    called: str = "",
    async_op: bool,
) -> Work | None:
    table, kernel = _chosen(process_group, collective, tensors[0].nbytes)
    config = table.group.algorithm
    arguments = complete(
        kernel, operands, table.group, tensors[0].itemsize, running_rank().ccl.source
    )
    for tensor in tensors:
        check_placement(collective, table, tensor)
    # Queued, not waited for: the launch waits for it.
    install(table)
    # Counted after all checks: a refused call must not shift the numbers of later ones against the
    # other ranks.
    process_group.calls += 1
    shapes = f"{tensors[0].dtype.name} {tensors[0].shape} on {placement_text(tensors[0])}"
    description = f"{called or collective}({', '.join(filter(None, (shapes, detail)))})"
    call = call_signature(
        f"{process_group.title} #{process_group.calls}", f"{description} by {config.name}"
    )
    work = Work(
        launch_on(
            f"{collective}.{config.name}",
            kernel,
            arguments,
            tensors,
            [(shard.spec.cube, shard.spec.pe) for shard in tensors[0].shards],
            queue_table=table.name,
            call=call,
            stream=communication_stream(),
        )
    )
    if async_op:
        return work
    work.wait()
    return None


def _chosen(
    process_group: ProcessGroup, collective: str, nbytes: int
) -> tuple[QueueTableSpec, Kernel]:
    """The queue table and the kernel of the algorithm that runs the collective for a tensor of
    `nbytes` bytes.
    """
    ccl = running_rank().ccl
    name = ccl.choose(process_group.algorithm, collective, nbytes)
    kernel = kernel_of(name, collective, ccl)
    if kernel is None:
        chosen = (
            f", which {AUTO!r} chooses by the section `selection` of {ccl.source},"
            if process_group.algorithm == AUTO
            else ""
        )
        others = algorithms_with(collective, ccl)
        known = f"those that do: {', '.join(others)}" if others else "none does"
        raise RuntimeError(f"algorithm {name!r}{chosen} does not support {collective}; {known}")
    return process_group.tables[name], kernel


def _member(collective: str, group: Group) -> ProcessGroup | None:
    process_group = resolve_group(group)
    if process_group is None:
        rank = running_rank().rank
        warn(
            f"Running {collective} on global rank {rank} which does not belong to the given group.",
            stacklevel=3,
        )
    return process_group


def _check_pair(output: object, source: object, collective: str) -> None:
    check_tensor("output", output)
    check_tensor("input", source)
    assert isinstance(output, Tensor)
    assert isinstance(source, Tensor)
    if output is source:
        raise ValueError(
            f"{collective}: output and input are one tensor; the output must be another one"
        )
    if output.dtype != source.dtype:
        problem = f"{output.dtype!r} is not {source.dtype!r}"
        raise TypeError(f"output tensor must have the same type as input tensor: {problem}")


def _shard_numel(tensor: Tensor) -> int:
    return tensor.shards[0].spec.nbytes // tensor.itemsize
