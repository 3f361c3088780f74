"""Send and receive between two ranks that a queue joins."""

from collections.abc import Callable, Sequence

from runtime.ccl import point_to_point
from runtime.ccl.directions import OPPOSITE
from runtime.language.value import Pointer
from runtime.rank_state import ProcessGroup
from runtime.torch.distributed.operands import check_rank, check_tensor
from runtime.torch.distributed.process_group import joined_group
from runtime.torch.distributed.work import Work
from runtime.torch.ops import launch_on, shard_pointers
from runtime.torch.tensor import Tensor


def isend(tensor: Tensor, dst: int) -> Work:
    """Send the elements of `tensor` to rank `dst`, which must receive into one of the same shape, type and placement.

    It completes when all elements are in the receive rings of the peer. If they do not fit, it takes the receiver at work: two
    ranks that both send such a tensor first and then receive wait for ever, as in PyTorch.

    Queues join some ranks only, on a ring the next and the previous one, and nobody else takes part in the call: `ValueError`
    for a rank that is out of reach, and for a shard on a PE without queues to other ranks.
    """
    joined = _checked(tensor, "destination", dst)
    return _launch(joined, point_to_point.send, tensor, _way(joined, joined.group.rank, dst))


def irecv(tensor: Tensor, src: int) -> Work:
    """Replace the elements of `tensor` by those that rank `src` sends; the counterpart of `isend`."""
    joined = _checked(tensor, "source", src)
    # The sender has chosen the queue; its direction has the opposite name here.
    return _launch(joined, point_to_point.recv, tensor, OPPOSITE[_way(joined, src, joined.group.rank)])


def send(tensor: Tensor, dst: int) -> None:
    """`isend` without a handle: queued like every collective, and what uses the tensor afterwards waits."""
    isend(tensor, dst)


def recv(tensor: Tensor, src: int) -> int:
    """`irecv` without a handle; returns the sender's rank, as in PyTorch."""
    irecv(tensor, src)
    return src


def _checked(tensor: Tensor, kind: str, peer: int) -> ProcessGroup:
    joined = joined_group()
    check_tensor("tensor", tensor)
    check_rank(kind, peer, joined.group.world_size)
    if peer == joined.group.rank:
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")
    outside = [shard.spec for shard in tensor.shards if (shard.spec.cube, shard.spec.pe) not in joined.plan.mapping.exchange]
    if outside:
        known = ", ".join(f"cube {cube} pe {pe}" for cube, pe in sorted(joined.plan.mapping.exchange)[:4])
        raise ValueError(f"the shard on {outside[0].place} is on a PE without queues to other ranks; those that have: {known}")
    return joined


def _way(joined: ProcessGroup, sender: int, receiver: int) -> str:
    """The direction in which the sender sends."""
    plan, own = joined.plan, joined.group.rank
    way = plan.way_between(sender, receiver)
    if way is None:
        peer = receiver if sender == own else sender
        ranks = range(joined.group.world_size)
        near = [rank for rank in ranks if (plan.way_between(own, rank) if sender == own else plan.way_between(rank, own))]
        name = joined.group.algorithm.name
        raise ValueError(
            f"rank {peer} is out of reach of rank {own}: the queues of algorithm {name!r} join it with "
            f"{_listed(near)} only; let the ranks between receive and send on, or use a collective"
        )
    return way


def _listed(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {' and '.join(map(str, ranks))}"


def _launch(joined: ProcessGroup, kernel: Callable[[Pointer, int, str, int], None], tensor: Tensor, way: str) -> Work:
    numel = tensor.shards[0].spec.nbytes // tensor.itemsize
    message = joined.group.ring_bytes_within_scratch(1) // tensor.itemsize
    pes = [(shard.spec.cube, shard.spec.pe) for shard in tensor.shards]
    return Work(launch_on(f"{kernel.__name__}.{way}", kernel, (shard_pointers(tensor), numel, way, message), [tensor], pes))
