"""Send and receive between any two ranks of a group.

They are queued like collectives, and those of a rank run one after the other in the order of the calls, `isend` and `irecv`,
too: a send of more than the receive rings of the peer hold waits for its receive, so ranks that all send first and then receive
wait for ever. `batch_isend_irecv` runs several of them together, and receives from the beginning.
"""

from collections.abc import Callable, Sequence
from typing import Literal, cast

from runtime.ccl import point_to_point
from runtime.ccl.call_signature import call_signature
from runtime.ccl.config import POINT_TO_POINT
from runtime.ccl.ring_allocator import QueueTableSpec
from runtime.core.requests import PerPe
from runtime.language.value import Pointer
from runtime.torch.distributed.operands import (
    check_placement,
    check_tensor,
    placement_text,
    rank_in_group,
)
from runtime.torch.distributed.process_group import Group, install, joined_group
from runtime.torch.distributed.work import Work
from runtime.torch.ops import launch_on, shard_pointers
from runtime.torch.rank_state import running_rank
from runtime.torch.tensor import Tensor

_End = Literal["dst", "src"]
_KINDS = {"dst": "destination", "src": "source"}


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work:
    """Send the elements of `tensor` to rank `dst`, which must receive into one of the same shape, type and placement.

    It completes when all elements are in the receive rings of the peer. The first call of a rank in a group installs its queues
    to all other ranks. `ValueError` for a rank that is not in it. Messages of two ranks arrive in the order in which they were
    sent: a `tag` is compared, not searched for.
    """
    return _launch(_PeerTransfer("dst", tensor, dst, group, tag, group_dst), overlaps=True)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work:
    """Replace the elements of `tensor` by those that rank `src` sends; the counterpart of `isend`."""
    return _launch(_PeerTransfer("src", tensor, src, group, tag, group_src), overlaps=True)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """`isend` without a handle: what uses the tensor afterwards waits."""
    _launch(_PeerTransfer("dst", tensor, dst, group, tag, group_dst), overlaps=False)


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """`irecv` without a handle; returns the sender's rank, as in PyTorch."""
    transfer = _PeerTransfer("src", tensor, src, group, tag, group_src)
    _launch(transfer, overlaps=False)
    return transfer.joined.sips[transfer.peer]


class P2POp:
    """A send or a receive for `batch_isend_irecv`: `op` is `isend` or `irecv`, the rest are its arguments."""

    def __init__(
        self,
        op: Callable[..., Work],
        tensor: Tensor,
        peer: int | None = None,
        group: Group = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        """`ValueError` for another `op`, and as `isend` and `irecv` do."""
        ends: dict[object, _End] = {isend: "dst", irecv: "src"}
        if op not in ends:
            raise ValueError(
                f"Invalid ``op`` {op!r}. Expected ``op`` to be torch.distributed.isend or irecv."
            )
        self.transfer = _PeerTransfer(ends[op], tensor, peer, group, tag, group_peer)


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Start sends and receives that run together, in any order; a `Work` for all of them.

    What a batch sends, a batch has to receive, for each pair of ranks in the same order; tags are not compared. `ValueError`
    for an empty list, or for operations of several groups.
    """
    for each in cast("Sequence[object]", p2p_op_list):
        if not isinstance(each, P2POp):
            problem = f"Each op is expected to be of type torch.distributed.P2POp, not {type(each).__name__}"
            raise TypeError(f"Invalid ``p2p_op_list``. {problem}.")
    transfers = [each.transfer for each in p2p_op_list]
    if len({id(each.joined) for each in transfers}) != 1:
        raise ValueError(
            f"batch_isend_irecv of {len(transfers)} operations: it takes at least one, all of one group"
        )
    table = _installed(transfers)
    pes = sorted({place for each in transfers for place in each.places})
    parts = {
        end: PerPe(
            {
                place: tuple(
                    each.part(place)
                    for each in transfers
                    if each.end == end and place in each.places
                )
                for place in pes
            }
        )
        for end in _KINDS
    }
    message_bytes = table.group.ring_bytes_within_scratch(1)
    tensors, call = (
        [each.tensor for each in transfers],
        call_signature(transfers[0].joined.title, "batch_isend_irecv"),
    )
    arguments = (parts["dst"], parts["src"], message_bytes)
    kernel = point_to_point.exchange
    return [
        Work(
            launch_on(
                "batch_isend_irecv",
                kernel,
                arguments,
                tensors,
                pes,
                queue_table=table.name,
                call=call,
                overlaps=True,
            )
        )
    ]


class _PeerTransfer:
    """One send (`end` is "dst") or receive ("src"), checked; `peer` is a rank of the group `joined`."""

    def __init__(
        self,
        end: _End,
        tensor: Tensor,
        rank: int | None,
        group: Group,
        tag: int,
        group_rank: int | None,
    ) -> None:
        kind, joined = _KINDS[end], joined_group(group)
        if joined is None:
            raise ValueError(
                f"Invalid {kind} rank: rank {running_rank().rank} is not in the given group"
            )
        check_tensor("tensor", tensor)
        self.end, self.tensor, self.joined, self.tag = end, tensor, joined, tag
        self.peer = rank_in_group(joined, kind, end, rank, group_rank)
        if self.peer == joined.rank:
            raise ValueError(
                f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process."
            )

    @property
    def way(self) -> str:
        return f"global_rank_{self.peer}"

    @property
    def places(self) -> list[tuple[int, int]]:
        return [(shard.spec.cube, shard.spec.pe) for shard in self.tensor.shards]

    @property
    def numel(self) -> int:
        return self.tensor.shards[0].spec.nbytes // self.tensor.itemsize

    def part(self, place: tuple[int, int]) -> tuple[str, object, int]:
        """What a PE of it does: direction, pointer, elements."""
        return self.way, shard_pointers(self.tensor).values[place], self.numel

    def call(self) -> str:
        """The text of the next message between the two ranks."""
        joined, own = self.joined, self.joined.rank
        source, target = (own, self.peer) if self.end == "dst" else (self.peer, own)
        ends = joined.sips[source], joined.sips[target]
        joined.messages[ends] += 1
        place = f"{joined.title} rank {ends[0]} to {ends[1]} #{joined.messages[ends]}"
        tag = f", tag {self.tag}" if self.tag else ""
        return call_signature(
            place,
            f"{self.tensor.dtype.name} {self.tensor.shape} on {placement_text(self.tensor)}{tag}",
        )


def _launch(transfer: _PeerTransfer, *, overlaps: bool) -> Work:
    kernel: Callable[[Pointer, int, str, int], None] = (
        point_to_point.send if transfer.end == "dst" else point_to_point.recv
    )
    tensor, table = transfer.tensor, _installed([transfer])
    message = table.group.ring_bytes_within_scratch(1) // tensor.itemsize
    arguments, name = (
        (shard_pointers(tensor), transfer.numel, transfer.way, message),
        f"{kernel.__name__}.{transfer.way}",
    )
    pes, call = transfer.places, transfer.call()
    return Work(
        launch_on(
            name,
            kernel,
            arguments,
            [tensor],
            pes,
            queue_table=table.name,
            call=call,
            overlaps=overlaps,
        )
    )


def _installed(transfers: Sequence[_PeerTransfer]) -> QueueTableSpec:
    joined = transfers[0].joined
    if POINT_TO_POINT not in joined.tables:
        source = running_rank().ccl.source
        raise RuntimeError(
            f"send and recv need the queues of the algorithm {POINT_TO_POINT!r}, which {source} does not have"
        )
    table = joined.tables[POINT_TO_POINT]
    for transfer in transfers:
        check_placement(f"send and recv of {transfer.tensor.name}", table, transfer.tensor)
    install(table)
    return table
