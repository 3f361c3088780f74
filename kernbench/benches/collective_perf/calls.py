"""The buffers of a collective, and the call that is measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from kernbench import DPPolicy, tl, torch
from kernbench.benches.collective_perf.collective import PerfCase, PerfParameters
from runtime.ccl.config import POINT_TO_POINT
from runtime.device.collectives.operands import check_placement
from runtime.device.launches.launch import launch_on, shard_pointers
from runtime.device.rank.queue_tables import install
from runtime.device.rank.rank_state import running_rank
from runtime.language.value import Pointer
from runtime.torch.tensors.tensor import Tensor

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
    """Input and output of a rank, of shape (rows, count); one tensor if the call is in place.

    Every row is spread over the same PEs, so each PE has a block of columns: its elements of all
    rows.
    """

    source: Tensor
    target: Tensor


def allocate(case: PerfCase, parameters: PerfParameters) -> Buffers:
    """Buffers of zeros."""
    cubes, pes = case.spread(parameters.cube_numbers, parameters.pes)
    policy = DPPolicy(cube="column_wise", pe="column_wise", cubes=cubes, num_pes=pes)
    source = torch.zeros(case.input_rows, case.count, dtype=case.dtype, dp=policy)
    if case.collective.in_place:
        return Buffers(source, source)
    return Buffers(source, torch.zeros(case.output_rows, case.count, dtype=case.dtype, dp=policy))


def call(case: PerfCase, buffers: Buffers) -> Callable[[], object]:
    """A function that enqueues the collective on these buffers and returns at once."""
    return partial(_CALLS[case.collective.name], case, buffers.source, buffers.target)


def send_and_receive(source: Tensor, target: Tensor) -> None:
    """Send `source` to the next rank and receive `target` from the previous rank.

    It corresponds to ncclSend and ncclRecv in one group: one kernel does both. With a kernel that
    sends, followed by a kernel that receives, all ranks would wait for credits forever as soon as
    the data exceeds the receive ring, because no rank reaches its second kernel.
    """
    group = running_rank().process_group
    assert group is not None, "a collective is measured in a process group"
    table = group.tables.get(POINT_TO_POINT)
    if table is None:
        raise ValueError(
            f"sendrecv needs the queues of the algorithm {POINT_TO_POINT!r}, "
            f"which {running_rank().ccl.source} does not have"
        )
    for tensor in (source, target):
        check_placement("sendrecv", table, tensor)
    install(table)
    numel, alone = source.shards[0].spec.nbytes // source.itemsize, group.world_size == 1
    following, previous = (
        "" if alone else f"global_rank_{(group.rank + step) % group.world_size}" for step in (1, -1)
    )
    pes = [(shard.spec.cube, shard.spec.pe) for shard in source.shards]
    # Half of the scratch of a kernel: it holds the value sent and the value received.
    message = table.group.ring_bytes_within_scratch(2) // source.itemsize
    arguments = (
        shard_pointers(source),
        shard_pointers(target),
        numel,
        following,
        previous,
        message,
    )
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
    source: Pointer, target: Pointer, numel: int, following: str, previous: str, message: int
) -> None:
    """Kernel: send `numel` elements at `source` to `following`, receive `target` from `previous`.

    Each message fits the receive ring, so a send completes before the peer receives it, and every
    rank reaches its receive. A rank without a peer copies.
    """
    for start in range(0, numel, message):
        with tl.scratch():
            value = tl.load(source + start, min(message, numel - start))
            if following:
                tl.send(following, value)
                value = tl.recv(previous, value.shape, value.dtype)
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
