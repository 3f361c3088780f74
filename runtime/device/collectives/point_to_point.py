"""Send and receive between any two ranks of a group.

A message is moved when its send and its receive are both posted (rendezvous). The k-th send with a
tag from one rank to another matches the k-th receive with that tag there, in the same group; posted
operations do not wait for each other. Each is a stream of its own, which waits for the current
stream first.
"""

from collections.abc import Callable, Sequence
from operator import index
from typing import Literal, cast

from runtime.ccl import point_to_point
from runtime.ccl.config import POINT_TO_POINT
from runtime.ccl.ring_allocator import QueueTableSpec
from runtime.core.device import Handle
from runtime.core.errors import ConfigError
from runtime.core.requests import KernelLaunchMsg, PerPe, Transfer
from runtime.device.collectives.operands import (
    check_placement,
    check_tensor,
    rank_in_group,
)
from runtime.device.collectives.process_group import Group, resolve_group
from runtime.device.collectives.work import Work
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.movers.message_parts import message_parts
from runtime.device.rank.queue_tables import install
from runtime.device.rank.rank_state import running_rank
from runtime.language.caller import program_line

_End = Literal["dst", "src"]
_KINDS = {"dst": "destination", "src": "source"}


def isend(
    tensor: StoredTensor,
    dst: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work:
    """Send the elements of `tensor` to rank `dst`, which must receive as many elements of the same
    type.

    The send is complete when all elements are in the receive rings of the peer, and it begins when
    the receive is posted. The first call of a rank in a group installs its queues to all other
    ranks. `ValueError` for a rank outside the group.
    """
    return Work(_PeerTransfer("dst", tensor, dst, group, tag, group_dst).post("isend"))


def irecv(
    tensor: StoredTensor,
    src: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work:
    """Replace the elements of `tensor` by those that rank `src` sends; the counterpart of
    `isend`.
    """
    return Work(_PeerTransfer("src", tensor, src, group, tag, group_src).post("irecv"))


def send(
    tensor: StoredTensor,
    dst: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """`isend`, and the current stream waits for it."""
    Work(_PeerTransfer("dst", tensor, dst, group, tag, group_dst).post("send")).wait()


def recv(
    tensor: StoredTensor,
    src: int | None = None,
    group: Group = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """`irecv`, and the current stream waits for it; returns the sender's rank, as in PyTorch."""
    transfer = _PeerTransfer("src", tensor, src, group, tag, group_src)
    Work(transfer.post("recv")).wait()
    return transfer.process_group.sips[transfer.peer]


class P2POp:
    """A send or a receive for `batch_isend_irecv`: `op` is `isend` or `irecv`, the other arguments
    are those of `op`.
    """

    def __init__(
        self,
        op: Callable[..., Work],
        tensor: StoredTensor,
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
    """Post sends and receives; the result is a `Work` for each, in their order.

    It is the same as to call `isend` and `irecv` one after the other. `ValueError` for an empty
    list, and for operations of different groups.
    """
    for each in cast("Sequence[object]", p2p_op_list):
        if not isinstance(each, P2POp):
            problem = (
                "Each op is expected to be of type torch.distributed.P2POp, "
                f"not {type(each).__name__}"
            )
            raise TypeError(f"Invalid ``p2p_op_list``. {problem}.")
    transfers = [each.transfer for each in p2p_op_list]
    # By identity: two groups of the same ranks are different groups.
    if len({id(each.process_group) for each in transfers}) != 1:
        raise ValueError(
            f"batch_isend_irecv of {len(transfers)} operations: it takes at least one, all of one "
            "group"
        )
    return [Work(each.post("batch_isend_irecv")) for each in transfers]


class _PeerTransfer:
    """A checked send (`end` is "dst") or receive ("src"); `peer` is a rank of `process_group`."""

    def __init__(
        self,
        end: _End,
        tensor: StoredTensor,
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
        if end == "src" and rank is None and group_rank is None:
            raise ValueError(
                "recv from any rank is not supported: a receive is announced to its sender; "
                "specify src or group_src, the source rank"
            )
        self.end, self.tensor, self.process_group, self.tag = end, tensor, process_group, _tag(tag)
        self.peer = rank_in_group(process_group, kind, end, rank, group_rank)
        if self.peer == process_group.rank:
            raise ValueError(
                f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the "
                "current process."
            )

    def post(self, function: str) -> Handle:
        """Enqueue the operation, as a call of `function`."""
        tensor, table = self.tensor, self._installed()
        slot_bytes = table.group.algorithm.slot_size
        message = message_parts(tensor, sorted(table.plan.mapping.participants), slot_bytes)
        peer = self.process_group.sips[self.peer]
        direction = f"global_rank_{self.peer}"
        ahead = min(point_to_point.AHEAD, table.group.loads_of_send - 1)
        cut = slot_bytes // tensor.itemsize, table.group.slots_of_send, ahead
        sends = self.end == "dst"
        pes = tuple(sorted(message.sizes))
        arguments = (PerPe(message.starts), PerPe(message.sizes), direction)
        request = KernelLaunchMsg(
            name=f"{function} {'to' if sends else 'from'} {peer}",
            kernel=running_rank().announced(point_to_point.send if sends else point_to_point.recv),
            arguments=(*arguments, *cut) if sends else arguments,
            pes=pes,
            queues=table.name,
            call=self._call(),
            line=program_line(),
            transfer=Transfer(
                end="send" if sends else "recv",
                direction=direction,
                peer=peer,
                elements=message.text,
                begin=tensor.address,
                stop=tensor.address + max(tensor.nbytes, 1),
                tag=self.tag,
                function=function,
                line=program_line(),
            ),
        )
        return self._submit(request, table)

    def _submit(self, request: KernelLaunchMsg, table: QueueTableSpec) -> Handle:
        """Enqueue the launch in a stream of its own, which waits for the current stream."""
        state, tensor = running_rank(), self.tensor
        device, stream = state.device, state.device.new_stream()
        device.order_after_stream(stream, device.stream)
        device.order_after(stream, (state.installs[table.name],))
        mapping = tensor.map_requests(request.pes)
        if mapping:
            # Without the tensor's name: its elements do not matter here, and an open transfer of
            # them must not hold up this one.
            why = f"mapping the tensor of {request.name}"
            known = {name: each for name, each in state.mappings.items() if not each.done}
            handle = device.submit(mapping, why, stream=stream)
            state.mappings = known | {tensor.name: handle}
        elif tensor.name in state.mappings:
            device.order_after(stream, (state.mappings[tensor.name],))
        handle = device.submit(
            [request], request.name, tensors=frozenset((tensor.name,)), stream=stream
        )
        state.hold(handle, (tensor,))
        return handle

    def _call(self) -> str:
        """The id of the next message with this tag between the two ranks."""
        process_group, own = self.process_group, self.process_group.rank
        source, target = (own, self.peer) if self.end == "dst" else (self.peer, own)
        ends = process_group.sips[source], process_group.sips[target]
        # Both ends count the messages, so sender and receiver compute equal ids.
        process_group.messages[*ends, self.tag] += 1
        number = process_group.messages[*ends, self.tag]
        tag = f" tag {self.tag}" if self.tag else ""
        return f"{process_group.title} rank {ends[0]} to {ends[1]}{tag} #{number}"

    def _installed(self) -> QueueTableSpec:
        tables = self.process_group.tables
        source = running_rank().ccl.source
        if POINT_TO_POINT not in tables:
            raise RuntimeError(
                f"send and recv need the queues of the algorithm {POINT_TO_POINT!r}, which "
                f"{source} does not have"
            )
        table = tables[POINT_TO_POINT]
        check_placement(f"send and recv of {self.tensor.name}", table, self.tensor)
        if not table.group.slots_of_send:
            raise ConfigError(
                source,
                f"algorithms.{POINT_TO_POINT}.slot_size",
                f"is {table.group.algorithm.slot_size:,}, more than the scratch of sends, "
                f"{table.group.topology.transfer_scratch_bytes:,} bytes (transfer_scratch_mb)",
            )
        install(table)
        return table


def _tag(given: object) -> int:
    """`TypeError` for what is no integer, `RuntimeError` for a negative one, as with gloo."""
    try:
        # True is 1, and an integer of numpy one of Python: both ends compare the text of the tag.
        tag = index(cast("int", given))
    except TypeError:
        problem = f"must be int, not {type(given).__name__}"
        raise TypeError(f"tag {given!r} of a message {problem}") from None
    if tag < 0:
        raise RuntimeError(f"Tag must be nonnegative, not {tag}")
    return tag
