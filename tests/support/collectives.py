"""A rank program with every collective in flight at once, and what numpy says that it returns."""

from collections.abc import Callable
from functools import partial

import numpy as np

from runtime import torch
from runtime.dtypes import DType, float32

dist = torch.distributed


def contribution(rank: int, shape: tuple[int, ...], dtype: DType = float32) -> np.ndarray:
    """Small integers, so that no order of sums, or of products of few of them, rounds in any type."""
    return np.random.default_rng(rank).integers(-2, 3, shape).astype(dtype.numpy)


def all_of_them(sips: int, count: int) -> Callable[[int], np.ndarray]:
    """Every collective and a transfer to the next rank, in flight together, each on tensors of its own."""

    def worker(rank: int) -> np.ndarray:
        parts, one = [contribution(rank + 10 * step, (sips * count,)) for step in range(6)], contribution(rank, (count,))
        tensors = [torch.from_numpy(array) for array in parts]
        part, gathered, received, passed = (torch.zeros(size) for size in (count, sips * count, sips * count, count))
        of_rank, gathered_list = torch.from_numpy(one), [torch.zeros(count) for _ in range(sips)]
        work = [
            dist.all_reduce(tensors[0], async_op=True),
            dist.broadcast(tensors[1], sips - 1, async_op=True),
            dist.reduce(tensors[2], 0, async_op=True),
            dist.reduce_scatter_tensor(part, tensors[3], async_op=True),
            dist.all_gather_into_tensor(gathered, of_rank, async_op=True),
            dist.all_gather(gathered_list, of_rank, async_op=True),
            dist.all_to_all_single(received, tensors[4], async_op=True),
        ]
        # Rank 0 receives first: if everybody waited for room in the queue of the next one, nobody would receive.
        transfers = [partial(dist.send, of_rank, (rank + 1) % sips), partial(dist.recv, passed, (rank - 1) % sips)]
        for transfer in reversed(transfers) if rank == 0 else transfers:
            transfer()
        assert all(each is not None and each.wait() for each in work)
        outputs = [*tensors[:3], part, gathered, *gathered_list, received, passed]
        return np.concatenate([tensor.numpy() for tensor in outputs])

    return worker


def outcome_of_all(rank: int, sips: int, count: int) -> np.ndarray:
    """What numpy says that `all_of_them` returns."""
    parts = [[contribution(each + 10 * step, (sips * count,)) for each in range(sips)] for step in range(6)]
    ones = [contribution(each, (count,)) for each in range(sips)]
    mine = slice(rank * count, (rank + 1) * count)
    reduced = sum(parts[2]) if rank == 0 else parts[2][rank]
    exchanged = [array[mine] for array in parts[4]]
    outputs = [sum(parts[0]), parts[1][-1], reduced, sum(parts[3])[mine], *ones, *ones, *exchanged, ones[rank - 1]]
    return np.concatenate([np.asarray(array) for array in outputs])
