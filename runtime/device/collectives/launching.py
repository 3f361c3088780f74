"""The launch of a collective: the kernel of the group's algorithm on the PEs that move elements.

A collective is a command of the rank's communication stream, and the call returns at once. It waits
for the current stream, and unless it is called with `async_op=True`, the current stream waits for
it. A later access to one of its tensors waits for it, and the collectives of a rank run one after
the other, in the order of the calls. Every rank must make the same calls in the same order, with
the same shapes, types and placements.

Signatures are PyTorch's. `group` is a result of `new_group`, by default the default group. Ranks in
arguments are global ranks; those of arguments whose names begin with `group_` are ranks of the
group. On a rank outside the group a call has no effect. With `async_op=True` a call returns a
`Work`, else None.

The slots of a call carry its signature, such as `world #3: all_reduce(...)`. A rank that receives a
slot with another signature under the same number raises `CollectiveMismatchError`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from warnings import warn

from runtime.ccl.algorithm_module import Kernel, algorithms_with, complete, kernel_of
from runtime.ccl.call_signature import call_signature
from runtime.ccl.config import AUTO, CallShape
from runtime.ccl.group import is_grid
from runtime.ccl.operand_order import in_order
from runtime.ccl.ring_allocator import QueueTableSpec
from runtime.device.collectives.operands import check_shards
from runtime.device.collectives.process_group import Group, resolve_group
from runtime.device.collectives.work import Work, communication_stream
from runtime.device.launches.launch import launch_on
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.movers.movers import shards_text
from runtime.device.rank.queue_tables import install
from runtime.device.rank.rank_state import ProcessGroup, running_rank
from runtime.model.placement import ShardSpec


@dataclass(frozen=True, kw_only=True)
class CollectiveCall:
    """One call of a collective, with checked operands.

    `collective` is the name of the kernel, `called` that of the call in `torch.distributed`.
    `tensors` are all operands; the first one stands in the signature and decides the algorithm of
    `auto`. `movers` are the elements that each PE moves, `operands` the arguments of the kernel
    before those of the algorithm. `detail` are other facts on which the ranks must agree, and
    `operands_text` describes the operands where they may differ from rank to rank. `algorithm` is
    by default that of the group.
    """

    collective: str
    tensors: Sequence[StoredTensor]
    movers: Sequence[ShardSpec]
    operands: tuple[object, ...]
    detail: str = ""
    called: str = ""
    algorithm: str = ""
    operands_text: str = ""

    def launch(self, process_group: ProcessGroup, *, async_op: bool) -> Work | None:
        """Queue the call; a `Work` with `async_op`, else None."""
        first, movers, name = self.tensors[0], self.movers, self.called or self.collective
        cubes = len({spec.cube for spec in movers})
        chosen = self.algorithm or chosen_algorithm(
            process_group, self.collective, first.nbytes, cubes
        )
        table, kernel = kernel_of_group(process_group, chosen, self.collective, called=name)
        config = table.group.algorithm
        arguments = complete(
            kernel,
            in_order(self.collective, self.operands, table.group.order),
            table.group,
            first.itemsize,
            running_rank().ccl.source,
        )
        check_shards(name, table, movers)
        # Queued, not waited for: the launch waits for it.
        install(table)
        # Counted after all checks: a refused call must not shift the numbers of later ones against
        # the other ranks.
        process_group.calls += 1
        shapes = self.operands_text or (
            f"{first.dtype.name} {first.shape} on {shards_text(movers)}"
        )
        description = f"{name}({', '.join(filter(None, (shapes, self.detail)))})"
        work = Work(
            launch_on(
                f"{self.collective}.{config.name}",
                kernel,
                arguments,
                self.tensors,
                [(spec.cube, spec.pe) for spec in movers],
                queue_table=table.name,
                call=call_signature(
                    f"{process_group.title} #{process_group.calls}",
                    f"{description} by {config.name}",
                ),
                stream=communication_stream(),
            )
        )
        process_group.opened(name, work.handle, running_rank().clock)
        if async_op:
            return work
        work.wait()
        return None


def chosen_algorithm(
    process_group: ProcessGroup, collective: str, nbytes: int, cubes: int = 1
) -> str:
    """The algorithm that runs the collective for a tensor of `nbytes` bytes on `cubes` cubes."""
    state, sips = running_rank(), process_group.sips
    call = CallShape(nbytes, len(sips), cubes, is_grid(sips, state.topology))
    return state.ccl.choose(process_group.algorithm, collective, call)


def kernel_of_group(
    process_group: ProcessGroup, name: str, collective: str, *, called: str = ""
) -> tuple[QueueTableSpec, Kernel]:
    """The queue table and the kernel of an algorithm.

    `RuntimeError` if it has no kernel of the collective, which is `called` so in the message.
    """
    ccl = running_rank().ccl
    if name not in process_group.tables:
        raise RuntimeError(
            f"{called or collective} needs the queues of the algorithm {name!r}, which "
            f"{ccl.source} does not have"
        )
    kernel = kernel_of(name, collective, ccl)
    if kernel is None:
        chosen = (
            f", which {AUTO!r} chooses by the section `selection` of {ccl.source},"
            if process_group.algorithm == AUTO
            else ""
        )
        others = algorithms_with(collective, ccl)
        known = f"those that do: {', '.join(others)}" if others else "none does"
        raise RuntimeError(
            f"algorithm {name!r}{chosen} does not support {called or collective}; {known}"
        )
    return process_group.tables[name], kernel


def member(collective: str, group: Group, *, stacklevel: int = 3) -> ProcessGroup | None:
    """The process group of a call; on a rank outside it None, and a warning at the line of the
    caller, `stacklevel` - 1 calls up.
    """
    process_group = resolve_group(group)
    if process_group is None:
        rank = running_rank().rank
        warn(
            f"Running {collective} on global rank {rank} which does not belong to the given group.",
            stacklevel=stacklevel,
        )
    return process_group
