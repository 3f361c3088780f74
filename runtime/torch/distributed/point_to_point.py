"""Send and receive between any two ranks of a group.

They are queued like collectives. Those of a rank run one after the other in the order of the calls,
`isend` and `irecv` too. A send of more bytes than the peer's receive rings hold waits for its
receive, so ranks that all send before they receive deadlock. `batch_isend_irecv` runs several
together and posts its receives first.
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
from runtime.torch.distributed.process_group import Group, install, resolve_group
from runtime.torch.distributed.work import Work, communication_stream
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
    """Send the elements of `tensor` to rank `dst`, which must receive into a tensor of the same
    shape, type and placement.

    The send is complete when all elements are in the receive rings of the peer. The first call of a
    rank in a group installs its queues to all other ranks. `ValueError` for a rank outside the
    group. Messages between two ranks arrive in the order of the sends: a `tag` is compared with
    that of the receive, but does not select a message.
    """
    return _launch(_PeerTransfer("dst", tensor, dst, group, tag, group_dst), overlaps=True)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work:
    """Replace the elements of `tensor` by those that rank `src` sends; the counterpart of
    `isend`.
    """
    return _launch(_PeerTransfer("src", tensor, src, group, tag, group_src), overlaps=True)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """`isend` without a handle: later work waits for it."""
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
    return transfer.process_group.sips[transfer.peer]


class P2POp:
    """A send or a receive for `batch_isend_irecv`: `op` is `isend` or `irecv`, the other arguments
    are those of `op`.
    """

    def __init__(
        self,
        op: Callable[..., Work],
        tensor: Tensor,
        peer: int | None = None,
        group: Group = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        """`ValueError` for another `op`, and for arguments that `isend` and `irecv` refuse."""
        ends: dict[object, _End] = {isend: "dst", irecv: "src"}
        if op not in ends:
            raise ValueError(
                f"Invalid ``op`` {op!r}. Expected ``op`` to be torch.distributed.isend or irecv."
            )
        self.transfer = _PeerTransfer(ends[op], tensor, peer, group, tag, group_peer)


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Queue sends and receives that run together, in any order; the result is one `Work` for all of
    them.

    A peer receives the sends of a batch in a batch, in the same order for each pair of ranks; tags
    are not compared. `ValueError` for an empty list, and for operations of different groups.
    """
    for each in cast("Sequence[object]", p2p_op_list):
        if not isinstance(each, P2POp):
            problem = (
                "Each op is expected to be of type torch.distributed.P2POp, "
                f"not {type(each).__name__}"
            )
            raise TypeError(f"Invalid ``p2p_op_list``. {problem}.")
    transfers = [each.transfer for each in p2p_op_list]
    # By identity: two groups of the same ranks are different groups with queues of their own.
    if len({id(each.process_group) for each in transfers}) != 1:
        raise ValueError(
            f"batch_isend_irecv of {len(transfers)} operations: it takes at least one, all of one "
            "group"
        )
    table = _installed(transfers)
    # One launch on all PEs of the batch; a PE without a segment of an operation has an empty tuple.
    pes = sorted({pe for each in transfers for pe in each.pes})
    segments = {
        end: PerPe(
            {
                pe: tuple(
                    each.segment(pe) for each in transfers if each.end == end and pe in each.pes
                )
                for pe in pes
            }
        )
        for end in _KINDS
    }
    message_bytes = table.group.ring_bytes_within_scratch(1)
    tensors, call = (
        [each.tensor for each in transfers],
        call_signature(transfers[0].process_group.title, "batch_isend_irecv"),
    )
    arguments = (segments["dst"], segments["src"], message_bytes)
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
                stream=communication_stream(),
            )
        )
    ]


class _PeerTransfer:
    """A checked send (`end` is "dst") or receive ("src"); `peer` is a rank of `process_group`."""

    def __init__(
        self,
        end: _End,
        tensor: Tensor,
        rank: int | None,
        group: Group,
        tag: int,
        group_rank: int | None,
    ) -> None:
        kind, process_group = _KINDS[end], resolve_group(group)
        if process_group is None:
            raise ValueError(
                f"Invalid {kind} rank: rank {running_rank().rank} is not in the given group"
            )
        check_tensor("tensor", tensor)
        self.end, self.tensor, self.process_group, self.tag = end, tensor, process_group, tag
        self.peer = rank_in_group(process_group, kind, end, rank, group_rank)
        if self.peer == process_group.rank:
            raise ValueError(
                f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the "
                "current process."
            )

    @property
    def direction(self) -> str:
        return f"global_rank_{self.peer}"

    @property
    def pes(self) -> list[tuple[int, int]]:
        return [(shard.spec.cube, shard.spec.pe) for shard in self.tensor.shards]

    @property
    def numel(self) -> int:
        return self.tensor.shards[0].spec.nbytes // self.tensor.itemsize

    def segment(self, pe: tuple[int, int]) -> tuple[str, object, int]:
        """The operands of a PE: direction, pointer, number of elements."""
        return self.direction, shard_pointers(self.tensor).values[pe], self.numel

    def call(self) -> str:
        """The signature of the next message between the two ranks."""
        process_group, own = self.process_group, self.process_group.rank
        source, target = (own, self.peer) if self.end == "dst" else (self.peer, own)
        ends = process_group.sips[source], process_group.sips[target]
        # Both ends count the messages of their pair, so sender and receiver compute equal
        # signatures.
        process_group.messages[ends] += 1
        number = process_group.messages[ends]
        call = f"{process_group.title} rank {ends[0]} to {ends[1]} #{number}"
        tag = f", tag {self.tag}" if self.tag else ""
        return call_signature(
            call,
            f"{self.tensor.dtype.name} {self.tensor.shape} on {placement_text(self.tensor)}{tag}",
        )


def _launch(transfer: _PeerTransfer, *, overlaps: bool) -> Work:
    kernel: Callable[[Pointer, int, str, int], None] = (
        point_to_point.send if transfer.end == "dst" else point_to_point.recv
    )
    tensor, table = transfer.tensor, _installed([transfer])
    message = table.group.ring_bytes_within_scratch(1) // tensor.itemsize
    arguments, name = (
        (shard_pointers(tensor), transfer.numel, transfer.direction, message),
        f"{kernel.__name__}.{transfer.direction}",
    )
    pes, call = transfer.pes, transfer.call()
    work = Work(
        launch_on(
            name,
            kernel,
            arguments,
            [tensor],
            pes,
            queue_table=table.name,
            call=call,
            stream=communication_stream(),
        )
    )
    if not overlaps:
        work.wait()
    return work


def _installed(transfers: Sequence[_PeerTransfer]) -> QueueTableSpec:
    process_group = transfers[0].process_group
    if POINT_TO_POINT not in process_group.tables:
        source = running_rank().ccl.source
        raise RuntimeError(
            f"send and recv need the queues of the algorithm {POINT_TO_POINT!r}, which {source} "
            "does not have"
        )
    table = process_group.tables[POINT_TO_POINT]
    for transfer in transfers:
        check_placement(f"send and recv of {transfer.tensor.name}", table, transfer.tensor)
    install(table)
    return table
