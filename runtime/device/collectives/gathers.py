"""The collectives that copy elements from or to one rank, or from every rank to every rank:
broadcast, all-gather, gather and scatter.
"""

from collections.abc import Sequence

from runtime.device.collectives.launching import CollectiveCall, member
from runtime.device.collectives.operands import (
    check_absent,
    check_given,
    check_list,
    check_pair,
    check_parts,
    check_reads,
    check_tensor,
    check_writes,
    rank_in_group,
)
from runtime.device.collectives.process_group import Group
from runtime.device.collectives.work import Work
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.movers.movers import movers_of, numels, parts_of, pointers, pointers_by_rank


def broadcast(
    tensor: StoredTensor,
    src: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Replace the elements of `tensor` on every rank by those of rank `src`."""
    process_group = member("broadcast", group)
    if process_group is None:
        return None
    check_tensor("tensor", tensor)
    root = rank_in_group(process_group, "root", "src", src, group_src)
    movers = movers_of(tensor)
    return CollectiveCall(
        collective="broadcast",
        tensors=[tensor],
        movers=movers,
        operands=(pointers(tensor, movers), numels(movers, tensor.itemsize), root),
        detail=f"root {process_group.sips[root]}",
    ).launch(process_group, async_op=async_op)


def all_gather(
    tensor_list: Sequence[StoredTensor],
    tensor: StoredTensor,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Write the elements of `tensor` of rank r to `tensor_list[r]`, on every rank; r is a rank of
    the group.

    `ValueError` unless the list has one tensor per rank, with the shape and type of `tensor`, and
    each is flat or placed like `tensor`.
    """
    process_group = member("all_gather", group)
    if process_group is None:
        return None
    check_tensor("tensor", tensor)
    outputs = check_list("tensor_list", tensor_list, "tensor", tensor, process_group.world_size)
    movers = check_writes("all_gather", "tensor", tensor, {"tensor_list": outputs})
    targets = pointers_by_rank([pointers(each, movers) for each in outputs], movers)
    return CollectiveCall(
        collective="all_gather",
        tensors=[tensor, *outputs],
        movers=movers,
        operands=(pointers(tensor, movers), numels(movers, tensor.itemsize), targets),
    ).launch(process_group, async_op=async_op)


def all_gather_into_tensor(
    output_tensor: StoredTensor,
    input_tensor: StoredTensor,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Write the input tensors of all ranks to `output_tensor`, one after the other.

    The output has `world_size` times the elements, in any shape. `ValueError` for other sizes, and
    unless both tensors are flat or every PE holds its own columns of both.
    """
    process_group = member("all_gather_into_tensor", group)
    if process_group is None:
        return None
    check_pair(output_tensor, input_tensor, "all_gather_into_tensor")
    world_size = process_group.world_size
    if output_tensor.numel() != world_size * input_tensor.numel():
        problem = "output tensor size must be equal to world_size times input tensor size"
        raise ValueError(
            f"{problem}: {output_tensor.numel()} is not {world_size} x {input_tensor.numel()}"
        )
    movers = check_parts(
        "all_gather_into_tensor", output_tensor, input_tensor, world_size, writes=True
    )
    targets = parts_of(output_tensor, input_tensor, movers, world_size)
    return CollectiveCall(
        collective="all_gather_into_tensor",
        tensors=[input_tensor, output_tensor],
        movers=movers,
        operands=(pointers(input_tensor, movers), numels(movers, input_tensor.itemsize), targets),
    ).launch(process_group, async_op=async_op)


def gather(
    tensor: StoredTensor,
    gather_list: Sequence[StoredTensor] | None = None,
    dst: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Write the elements of `tensor` of rank r to `gather_list[r]` on rank `dst`, by default rank
    0; r is a rank of the group.

    Other ranks pass no list. `ValueError` unless the list has one tensor per rank, with the shape
    and type of `tensor`, and each is flat or placed like `tensor`.
    """
    process_group = member("gather", group)
    if process_group is None:
        return None
    check_tensor("tensor", tensor)
    # PyTorch's default is the global rank 0, also in a group without it.
    default = 0 if dst is None and group_dst is None else dst
    root = rank_in_group(process_group, "root", "dst", default, group_dst)
    movers, outputs = movers_of(tensor), tuple[StoredTensor, ...]()
    if root == process_group.rank:
        check_given("gather_list", gather_list, "destination")
        outputs = check_list("gather_list", gather_list, "tensor", tensor, process_group.world_size)
        written = check_writes("gather", "tensor", tensor, {"gather_list": outputs})
        if written != movers:
            # The other ranks do not have the root's list, and would not leave out the same PEs.
            raise ValueError(
                f"gather: the tensors of `gather_list` have fewer replicas than `tensor`, "
                f"{tensor.policy}; place them like `tensor`"
            )
    else:
        check_absent("gather_list", gather_list, "destination", process_group.sips[root])
    targets = pointers_by_rank([pointers(each, movers) for each in outputs], movers)
    return CollectiveCall(
        collective="gather",
        tensors=[tensor, *outputs],
        movers=movers,
        operands=(pointers(tensor, movers), numels(movers, tensor.itemsize), targets, root),
        detail=f"root {process_group.sips[root]}",
    ).launch(process_group, async_op=async_op)


def scatter(
    tensor: StoredTensor,
    scatter_list: Sequence[StoredTensor] | None = None,
    src: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write the elements of `scatter_list[r]` of rank `src`, by default rank 0, to `tensor` of rank
    r; r is a rank of the group.

    Other ranks pass no list. `ValueError` unless the list has one tensor per rank, with the shape
    and type of `tensor`, and each is flat or placed like `tensor`.
    """
    process_group = member("scatter", group)
    if process_group is None:
        return None
    check_tensor("tensor", tensor)
    # PyTorch's default is the global rank 0, also in a group without it.
    default = 0 if src is None and group_src is None else src
    root = rank_in_group(process_group, "root", "src", default, group_src)
    movers, inputs = movers_of(tensor), tuple[StoredTensor, ...]()
    if root == process_group.rank:
        check_given("scatter_list", scatter_list, "source")
        inputs = check_list(
            "scatter_list", scatter_list, "tensor", tensor, process_group.world_size
        )
        check_reads("scatter", "tensor", tensor, {"scatter_list": inputs})
    else:
        check_absent("scatter_list", scatter_list, "source", process_group.sips[root])
    sources = pointers_by_rank([pointers(each, movers) for each in inputs], movers)
    return CollectiveCall(
        collective="scatter",
        tensors=[tensor, *inputs],
        movers=movers,
        operands=(sources, numels(movers, tensor.itemsize), pointers(tensor, movers), root),
        detail=f"root {process_group.sips[root]}",
    ).launch(process_group, async_op=async_op)
