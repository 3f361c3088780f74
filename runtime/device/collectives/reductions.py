"""The collectives that combine elements: all-reduce, reduce, reduce-scatter, and the barrier, which
is an all-reduce where the algorithm has one.
"""

from collections.abc import Sequence

from runtime.ccl.algorithm_module import kernel_of
from runtime.ccl.config import PAIRWISE
from runtime.ccl.reduction import ReduceOp
from runtime.core.dtypes import float32
from runtime.device.collectives.launching import (
    CollectiveCall,
    chosen_algorithm,
    kernel_of_group,
    member,
)
from runtime.device.collectives.operands import (
    check_list,
    check_op,
    check_pair,
    check_parts,
    check_reads,
    check_tensor,
    rank_in_group,
)
from runtime.device.collectives.process_group import Group
from runtime.device.collectives.work import Work
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.movers.movers import (
    movers_of,
    numels,
    parts_of,
    pointers,
    pointers_by_rank,
    spread,
)
from runtime.device.rank.rank_state import ProcessGroup, running_rank
from runtime.model.placement import ONE_PE, DPPolicy

_BARRIER_BYTES = 4


def all_reduce(
    tensor: StoredTensor, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Replace the elements of `tensor` by the combined elements of all ranks, with the same bits on
    every rank.

    An algorithm combines corresponding elements of all ranks. `intercube` also combines the shards
    of all cubes of a rank, and `hierarchical` those of all its PEs. `ValueError` if the algorithm
    does not support the placement, `TypeError` for the average of integers and for bitwise
    operations on floating-point elements.
    """
    process_group = member("all_reduce", group)
    if process_group is None:
        return None
    check_tensor("tensor", tensor)
    check_op("all_reduce", op, tensor)
    return _all_reduce(tensor, op).launch(process_group, async_op=async_op)


def reduce(
    tensor: StoredTensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Replace the elements of `tensor` on rank `dst` by the combined elements of all ranks; other
    ranks keep theirs.
    """
    process_group = member("reduce", group)
    if process_group is None:
        return None
    check_tensor("tensor", tensor)
    root = rank_in_group(process_group, "root", "dst", dst, group_dst)
    check_op("reduce", op, tensor)
    movers = movers_of(tensor)
    return CollectiveCall(
        collective="reduce",
        tensors=[tensor],
        movers=movers,
        operands=(pointers(tensor, movers), numels(movers, tensor.itemsize), op, root),
        detail=f"op {op.value}, root {process_group.sips[root]}",
    ).launch(process_group, async_op=async_op)


def reduce_scatter(
    output: StoredTensor,
    input_list: Sequence[StoredTensor],
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Combine the tensors `input_list[r]` of all ranks and write the result to `output` of rank r;
    r is a rank of the group.

    `ValueError` unless the list has one tensor per rank, with the shape and type of `output`, and
    each is flat or placed like `output`.
    """
    process_group = member("reduce_scatter", group)
    if process_group is None:
        return None
    check_tensor("output", output)
    inputs = check_list("input_list", input_list, "output", output, process_group.world_size)
    check_op("reduce_scatter", op, output)
    check_reads("reduce_scatter", "output", output, {"input_list": inputs})
    movers = movers_of(output)
    sources = pointers_by_rank([pointers(each, movers) for each in inputs], movers)
    return CollectiveCall(
        collective="reduce_scatter_tensor",
        called="reduce_scatter",
        tensors=[output, *inputs],
        movers=movers,
        operands=(sources, numels(movers, output.itemsize), op, pointers(output, movers)),
        detail=f"op {op.value}",
    ).launch(process_group, async_op=async_op)


def reduce_scatter_tensor(
    output: StoredTensor,
    input: StoredTensor,  # noqa: A002 - PyTorch's name
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Combine the input tensors of all ranks and write part r of the result to `output` of rank r.

    The input has `world_size` times the elements, in any shape. `ValueError` for other sizes, and
    unless both tensors are flat or every PE holds its own columns of both.
    """
    process_group = member("reduce_scatter_tensor", group)
    if process_group is None:
        return None
    check_pair(output, input, "reduce_scatter_tensor")
    check_op("reduce_scatter_tensor", op, input)
    world_size = process_group.world_size
    if input.numel() != world_size * output.numel():
        problem = "input tensor must be the same size as output size times world size"
        raise ValueError(f"{problem}: {input.numel()} is not {output.numel()} x {world_size}")
    check_parts("reduce_scatter_tensor", input, output, world_size)
    movers = movers_of(output)
    sources = parts_of(input, output, movers, world_size)
    return CollectiveCall(
        collective="reduce_scatter_tensor",
        tensors=[input, output],
        movers=movers,
        operands=(sources, numels(movers, output.itemsize), op, pointers(output, movers)),
        detail=f"op {op.value}",
    ).launch(process_group, async_op=async_op)


def barrier(
    group: Group = None, async_op: bool = False, device_ids: Sequence[int] | None = None
) -> Work | None:
    """Return when every rank has called it: an all-reduce of one element per PE, through the same
    queues; if the algorithm of the group has no all-reduce, an exchange of one element by
    `pairwise`.

    With `async_op=True` it returns a `Work` that completes then. `ValueError` for a device that is
    not the rank's own.
    """
    if device_ids is not None and list(device_ids) != [running_rank().rank]:
        raise ValueError(
            f"barrier on device_ids {list(device_ids)}: this rank has the device "
            f"{running_rank().rank}"
        )
    process_group = member("barrier", group)
    if process_group is None:
        return None
    work = _barrier_call(process_group).launch(process_group, async_op=True)
    assert work is not None
    if async_op:
        return work
    running_rank().device.wait(work.handle)
    return None


def _barrier_call(process_group: ProcessGroup) -> CollectiveCall:
    name = chosen_algorithm(process_group, "all_reduce", _BARRIER_BYTES)
    if kernel_of(name, "all_reduce", running_rank().ccl) is None:
        return _barrier_by_pairs(process_group.world_size)
    # The smallest tensor that the algorithm supports: one element on every PE that has neighbours
    # in its SIP, or on one PE if none has.
    table, _ = kernel_of_group(process_group, name, "all_reduce")
    local = table.plan.mapping.local
    cubes, pes = (len({coordinates[axis] for coordinates in local}) or 1 for axis in (0, 1))
    tensor = table.barrier
    if tensor is None:
        table.barrier = tensor = _elements(1, DPPolicy(num_cubes=cubes, num_pes=pes))
        tensor.make_zero()
    assert isinstance(tensor, StoredTensor), "set here alone"
    return _all_reduce(tensor, ReduceOp.SUM, called="barrier", detail="")


def _barrier_by_pairs(ranks: int) -> CollectiveCall:
    """Every rank receives an element of every other one, by `pairwise`, which each group has."""
    tensors = [_elements(ranks, ONE_PE) for _ in range(2)]
    movers = spread(1, _BARRIER_BYTES)
    sent, received = (
        pointers_by_rank(
            [pointers(tensor, movers, rank * _BARRIER_BYTES) for rank in range(ranks)], movers
        )
        for tensor in tensors
    )
    return CollectiveCall(
        collective="all_to_all_single",
        called="barrier",
        tensors=tensors,
        movers=movers,
        operands=(sent, numels(movers, _BARRIER_BYTES), received),
        algorithm=PAIRWISE,
    )


def _elements(count: int, policy: DPPolicy) -> StoredTensor:
    return StoredTensor.allocate((count,), float32, policy, running_rank())


def _all_reduce(
    tensor: StoredTensor, op: ReduceOp, *, called: str = "", detail: str | None = None
) -> CollectiveCall:
    movers = movers_of(tensor)
    return CollectiveCall(
        collective="all_reduce",
        called=called,
        tensors=[tensor],
        movers=movers,
        operands=(pointers(tensor, movers), numels(movers, tensor.itemsize), op),
        detail=f"op {op.value}" if detail is None else detail,
    )
