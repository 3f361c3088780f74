"""A user-defined all-reduce on a star, whose hub is rank 0.

`python examples/own_algorithm.py` tests it in the mock runtime. To run it on the chip, append this
entry to the section `algorithms` of a `ccl.yaml`:

  star:
    module: examples.own_algorithm
    topology: examples.own_algorithm:star
    mapper: all_pes
    validator: any_placement
"""

from dataclasses import replace
from functools import partial

import numpy as np

from kernbench import mock, tl
from runtime.ccl import config, exchange, group, plan, reduction
from runtime.core.coordinates import PeCoordinates
from runtime.model.topology import load_topology


def star(rank: int, w: int, h: int) -> dict[str, int]:
    """The neighbours of a rank by direction; exactly one direction of each neighbour leads back."""
    return {f"spoke_{other}": other for other in range(1, w * h)} if rank == 0 else {"hub": 0}


def arguments(joined: group.Group, itemsize: int) -> tuple[int, int, int]:
    """(rank, world size, elements per message): a message fits a receive ring, and its copies at
    the hub fit the scratch.
    """
    return (
        joined.rank,
        joined.world_size,
        joined.ring_bytes_within_scratch(2 * joined.world_size) // itemsize,
    )


def all_reduce(
    shard: tl.Pointer, numel: int, op: reduction.ReduceOp, rank: int, size: int, message: int
) -> None:
    """Kernel: the hub combines the contributions in the order of ranks and sends the result
    back.
    """
    spokes = [f"global_spoke_{other}" for other in range(1, size)] if rank == 0 else []
    for start, count in exchange.blocks(numel, message):
        with tl.scratch():
            value = tl.load(shard + start, count)
            for spoke in spokes:
                value = op.combine(value, tl.recv(spoke, count, shard.dtype))
            if rank > 0:
                tl.send("global_hub", value)
            value = (
                op.finish(value, size) if rank == 0 else tl.recv("global_hub", count, shard.dtype)
            )
            for spoke in spokes:
                tl.send(spoke, value)
            tl.store(shard + start, value)


def run_in_mock(ranks: int, numel: int) -> list[np.ndarray]:
    """The results of the kernel on PE 0 of every rank, where each rank contributes rank + 1,
    without the chip.
    """
    settings = replace(config.load_ccl().resolve("ring"), name="star", topology=f"{__name__}:star")
    sips, topology = tuple(range(ranks)), load_topology(sips=ranks)
    groups = [group.Group(rank, sips, settings, topology) for rank in sips]
    queues, pes = (
        plan.InstallPlan(groups[0], __file__),
        {PeCoordinates(rank, 0, 0): mock.MockPe(PeCoordinates(rank, 0, 0)) for rank in sips},
    )
    shards = [np.full(numel, rank + 1, np.float32) for rank in sips]
    kernels: list[tuple[mock.MockPe, partial[None]]] = []
    for rank, pe in enumerate(pes.values()):
        mock.join(pes, {(0, 0): queues.of_sip(rank).get((0, 0), ())}, rank)
        operands = pe.memory.map(shards[rank], "shard"), numel, reduction.ReduceOp.SUM
        kernels.append((pe, partial(all_reduce, *operands, *arguments(groups[rank], 4))))
    mock.run(kernels)
    return shards


if __name__ == "__main__":
    print(
        "right"
        if all((shard == 1 + 2 + 3 + 4).all() for shard in run_in_mock(ranks=4, numel=10_000))
        else "wrong"
    )
