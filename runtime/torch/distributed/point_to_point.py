"""Send and receive between any two ranks of a group."""

from collections.abc import Callable

from runtime.ccl import point_to_point
from runtime.ccl.call import call_text
from runtime.ccl.config import POINT_TO_POINT
from runtime.language.value import Pointer
from runtime.rank_state import ProcessGroup, running_rank
from runtime.torch.distributed.operands import check_placement, check_rank, check_tensor, placement_text
from runtime.torch.distributed.process_group import Group, install, joined_group
from runtime.torch.distributed.work import Work
from runtime.torch.ops import launch_on, shard_pointers
from runtime.torch.tensor import Tensor


def isend(tensor: Tensor, dst: int, group: Group = None) -> Work:
    """Send the elements of `tensor` to rank `dst`, which must receive into one of the same shape, type and placement.

    It completes when all elements are in the receive rings of the peer. If they do not fit, it takes the receiver at work: two
    ranks that both send such a tensor first and then receive wait for ever, as in PyTorch.

    The first call of a rank in a group installs its queues to all other ranks. `ValueError` for a rank that is not in it.
    """
    return _send(tensor, dst, group, overlaps=True)


def irecv(tensor: Tensor, src: int, group: Group = None) -> Work:
    """Replace the elements of `tensor` by those that rank `src` sends; the counterpart of `isend`."""
    return _recv(tensor, src, group, overlaps=True)


def send(tensor: Tensor, dst: int, group: Group = None) -> None:
    """`isend` without a handle: queued like every collective, and what uses the tensor afterwards waits."""
    _send(tensor, dst, group, overlaps=False)


def recv(tensor: Tensor, src: int, group: Group = None) -> int:
    """`irecv` without a handle; returns the sender's rank, as in PyTorch."""
    _recv(tensor, src, group, overlaps=False)
    return src


def _send(tensor: Tensor, dst: int, group: Group, *, overlaps: bool) -> Work:
    joined = _checked(tensor, "destination", dst, group)
    return _launch(joined, point_to_point.send, tensor, (running_rank().rank, dst), overlaps=overlaps)


def _recv(tensor: Tensor, src: int, group: Group, *, overlaps: bool) -> Work:
    joined = _checked(tensor, "source", src, group)
    return _launch(joined, point_to_point.recv, tensor, (src, running_rank().rank), overlaps=overlaps)


def _checked(tensor: Tensor, kind: str, peer: int, group: Group) -> ProcessGroup:
    joined = joined_group(group)
    if joined is None:
        raise ValueError(f"Invalid {kind} rank: rank {running_rank().rank} is not in the given group")
    check_tensor("tensor", tensor)
    check_rank(kind, peer, joined)
    if peer == running_rank().rank:
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")
    if POINT_TO_POINT not in joined.tables:
        source = running_rank().ccl.source
        raise RuntimeError(f"send and recv need the queues of the algorithm {POINT_TO_POINT!r}, which {source} does not have")
    return joined


def _launch(
    joined: ProcessGroup, kernel: Callable[[Pointer, int, str, int], None], tensor: Tensor, ends: tuple[int, int],
    *, overlaps: bool,
) -> Work:  # fmt: skip
    table = joined.tables[POINT_TO_POINT]
    check_placement(kernel.__name__, table, tensor)
    install(table)
    joined.messages[ends] += 1
    place = f"{joined.name} rank {ends[0]} to {ends[1]} #{joined.messages[ends]}"
    call = call_text(place, f"{tensor.dtype.name} {tensor.shape} on {placement_text(tensor)}")
    numel = tensor.shards[0].spec.nbytes // tensor.itemsize
    message = table.group.ring_bytes_within_scratch(1) // tensor.itemsize
    (peer,) = set(ends) - {running_rank().rank}
    way = f"global_rank_{joined.sips.index(peer)}"
    pes = [(shard.spec.cube, shard.spec.pe) for shard in tensor.shards]
    arguments = (shard_pointers(tensor), numel, way, message)
    name = f"{kernel.__name__}.{way}"
    return Work(launch_on(name, kernel, arguments, [tensor], pes, queues=table.name, call=call, overlaps=overlaps))
