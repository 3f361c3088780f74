"""The buffers of a collective and the call that is measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from kernbench.benches.collective_perf.collective import PerfCase, PerfParameters
from runtime import DPPolicy, tl, torch
from runtime.ccl.config import POINT_TO_POINT
from runtime.language.value import Pointer
from runtime.torch.distributed.operands import check_placement
from runtime.torch.distributed.process_group import install
from runtime.torch.ops import launch_on, shard_pointers
from runtime.torch.rank_state import running_rank
from runtime.torch.tensor import Tensor

dist = torch.distributed
OPS: Mapping[str, dist.ReduceOp] = {
    "sum": dist.ReduceOp.SUM,
    "prod": dist.ReduceOp.PRODUCT,
    "max": dist.ReduceOp.MAX,
    "min": dist.ReduceOp.MIN,
    "avg": dist.ReduceOp.AVG,
}


@dataclass(frozen=True)
class Buffers:
    """What a rank puts in and what it gets, of shape (rows, count); one tensor where the collective works in place.

    Every row is spread over the same PEs, so each PE has a block of columns: its elements of all parts.
    """

    source: Tensor
    target: Tensor


def allocate(case: PerfCase, request: PerfParameters) -> Buffers:
    """Buffers of zeros."""
    cubes, pes = case.spread(request.cubes, request.pes)
    policy = DPPolicy(cube="column_wise", pe="column_wise", num_cubes=cubes, num_pes=pes)
    source = torch.zeros(case.input_rows, case.count, dtype=case.dtype, dp=policy)
    if case.collective.in_place:
        return Buffers(source, source)
    return Buffers(source, torch.zeros(case.output_rows, case.count, dtype=case.dtype, dp=policy))


def call(case: PerfCase, buffers: Buffers) -> Callable[[], object]:
    """The collective on these buffers, ready to be called: it is queued and returns at once."""
    return partial(_CALLS[case.collective.name], case, buffers.source, buffers.target)


def send_and_receive(source: Tensor, target: Tensor) -> None:
    """Send `source` to the next rank while `target` is received from the one before: ncclSend and ncclRecv in one group.

    One kernel does both. A kernel that sends first and one that receives after it, on every rank, would wait for ever as soon
    as a message does not fit the receive ring.
    """
    joined = running_rank().process_group
    assert joined is not None, "a collective is measured in a process group"
    table = joined.tables.get(POINT_TO_POINT)
    if table is None:
        raise ValueError(
            f"sendrecv needs the queues of the algorithm {POINT_TO_POINT!r}, which {running_rank().ccl.source} has not"
        )
    for tensor in (source, target):
        check_placement("sendrecv", table, tensor)
    install(table)
    numel, alone = source.shards[0].spec.nbytes // source.itemsize, joined.world_size == 1
    ahead, behind = (
        "" if alone else f"global_rank_{(joined.rank + step) % joined.world_size}"
        for step in (1, -1)
    )
    pes = [(shard.spec.cube, shard.spec.pe) for shard in source.shards]
    message = table.group.ring_bytes_within_scratch(2) // source.itemsize
    arguments = (shard_pointers(source), shard_pointers(target), numel, ahead, behind, message)
    launch_on(
        "sendrecv",
        pass_on,
        arguments,
        [source, target],
        pes,
        queue_table=table.name,
        call="sendrecv",
    )


def pass_on(
    source: Pointer, target: Pointer, numel: int, ahead: str, behind: str, message: int
) -> None:
    """Kernel: send `numel` elements at `source` in direction `ahead` and receive as many from `behind`, message by message.

    A message fits the receive ring, so the sends of a round end whatever the peers do. A rank without a peer copies.
    """
    for start in range(0, numel, message):
        with tl.scratch():
            value = tl.load(source + start, min(message, numel - start))
            if ahead:
                tl.send(ahead, value)
                value = tl.recv(behind, value.shape, value.dtype)
            tl.store(target + start, value)


_CALLS: Mapping[str, Callable[[PerfCase, Tensor, Tensor], object]] = {
    "all_reduce": lambda case, _, target: dist.all_reduce(target, OPS[case.op]),
    "reduce": lambda case, _, target: dist.reduce(target, case.root, OPS[case.op]),
    "broadcast": lambda case, _, target: dist.broadcast(target, case.root),
    "all_gather": lambda _, source, target: dist.all_gather_into_tensor(target, source),
    "reduce_scatter": lambda case, source, target: dist.reduce_scatter_tensor(
        target, source, OPS[case.op]
    ),
    "alltoall": lambda _, source, target: dist.all_to_all_single(target, source),
    "sendrecv": lambda _, source, target: send_and_receive(source, target),
}
