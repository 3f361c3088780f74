"""Rank programs with many operations in flight, and the results which numpy computes for them."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from runtime import tl, torch
from runtime.core.dtypes import DType, float32
from runtime.device.collectives.process_group import Group

dist = torch.distributed

GROUPS = {
    "tree": (0, 1, 2, 3),
    "recursive_doubling": (0, 1, 3),
    "halving_doubling": (1, 2, 3),
    "mesh": (0, 1, 2, 3),
    "ring_naive": (0, 2),
    "ring": (1, 3),
    "intercube": (0, 3),
    "hierarchical": (0, 1, 2),
}
"""Groups of four ranks by algorithm. Any two share a rank; some have equal members."""


def contribution(rank: int, shape: tuple[int, ...], dtype: DType = float32) -> np.ndarray:
    """Small integers: their sums, and products of a few of them, are exact in every type."""
    return np.random.default_rng(rank).integers(-2, 3, shape).astype(dtype.numpy)


def all_of_them(
    members: Sequence[int], count: int, group: Group = None
) -> Callable[[int], np.ndarray]:
    """Every collective of a group, and a transfer to the next member, in flight together."""
    size, last = len(members), members[-1]

    def worker(rank: int) -> np.ndarray:
        behind, ahead = (members[(members.index(rank) + step) % size] for step in (-1, 1))
        parts, one = (
            [contribution(rank + 10 * step, (size * count,)) for step in range(6)],
            contribution(rank, (count,)),
        )
        tensors = [torch.from_numpy(array) for array in parts]
        part, gathered, received, passed = (
            torch.zeros(each) for each in (count, size * count, size * count, count)
        )
        of_rank, gathered_list = torch.from_numpy(one), [torch.zeros(count) for _ in members]
        work = [
            dist.all_reduce(tensors[0], group=group, async_op=True),
            dist.broadcast(tensors[1], last, group, async_op=True),
            dist.reduce(tensors[2], members[0], group=group, async_op=True),
            dist.reduce_scatter_tensor(part, tensors[3], group=group, async_op=True),
            dist.all_gather_into_tensor(gathered, of_rank, group, async_op=True),
            dist.all_gather(gathered_list, of_rank, group, async_op=True),
            dist.all_to_all_single(received, tensors[4], group=group, async_op=True),
        ]
        # The first member receives first. If all of them sent first, and waited for a free slot at
        # the next member, no member would receive.
        transfers = [
            partial(dist.send, of_rank, ahead, group),
            partial(dist.recv, passed, behind, group),
        ]
        for transfer in reversed(transfers) if rank == members[0] else transfers:
            transfer()
        assert all(each is not None and each.wait() for each in work)
        outputs = [*tensors[:3], part, gathered, *gathered_list, received, passed]
        return np.concatenate([tensor.numpy() for tensor in outputs])

    return worker


def outcome_of_all(rank: int, members: Sequence[int], count: int) -> np.ndarray:
    """The result of `all_of_them`, computed with numpy."""
    position = members.index(rank)
    parts = [
        [contribution(each + 10 * step, (len(members) * count,)) for each in members]
        for step in range(6)
    ]
    ones = [contribution(each, (count,)) for each in members]
    mine = slice(position * count, (position + 1) * count)
    total = [np.sum(arrays, axis=0) for arrays in parts]
    reduced = total[2] if position == 0 else parts[2][position]
    exchanged = [array[mine] for array in parts[4]]
    outputs = [
        total[0],
        parts[1][-1],
        reduced,
        total[3][mine],
        *ones,
        *ones,
        *exchanged,
        ones[position - 1],
    ]
    return np.concatenate(outputs)


def pass_on(x: tl.Pointer, count: int) -> None:
    """Kernel: receive the elements of the previous rank of the ring of the default group."""
    tl.send("global_E", tl.load(x, count))
    tl.store(x, tl.recv("global_W", count, x.dtype))


def square(x: tl.Pointer, count: int) -> None:
    """Kernel: x = x * x."""
    values = tl.load(x, count)
    tl.store(x, values * values)


def groups_beside_kernels(rank: int, count: int) -> np.ndarray:
    """Collectives of several groups beside kernels, on four ranks with one PE each.

    First all-reduces of all `GROUPS`, while a kernel sends elements along the ring of the default
    group. Then a transfer to the opposite rank and an all-reduce of all ranks, while another
    kernel computes.
    """
    dist.init_process_group("ahbm", algorithm="ring")
    groups = [dist.new_group(members, algorithm=algorithm) for algorithm, members in GROUPS.items()]
    reduced = [
        torch.from_numpy(contribution(rank + 10 * step, (count,))) for step in range(len(groups))
    ]
    passed, squared, sent, whole = (
        torch.from_numpy(contribution(rank + 10 * step, (count,))) for step in range(20, 24)
    )
    received = torch.zeros(count)
    work = [
        dist.all_reduce(tensor, group=group, async_op=True)
        for tensor, group, members in zip(reduced, groups, GROUPS.values(), strict=True)
        if rank in members
    ]
    torch.launch("pass on", pass_on, passed, count)
    work += [dist.isend(sent, (rank + 2) % 4), dist.irecv(received, (rank + 2) % 4)]
    work += [dist.all_reduce(whole, dist.ReduceOp.MAX, async_op=True)]
    torch.launch("square", square, squared, count)
    assert all(each is not None and each.wait() for each in work)
    return np.concatenate(
        [tensor.numpy() for tensor in (*reduced, passed, squared, received, whole)]
    )


def outcome_of_groups(rank: int, count: int, ring: Sequence[int] = range(4)) -> np.ndarray:
    """The result of `groups_beside_kernels`, computed with numpy, for the ranks of the default
    group in the order of its ring.
    """

    def of(step: int, each: int = rank) -> np.ndarray:
        return contribution(each + 10 * step, (count,))

    reduced = [
        np.sum([of(step, each) for each in members], axis=0) if rank in members else of(step)
        for step, members in enumerate(GROUPS.values())
    ]
    whole = np.max([of(23, each) for each in range(4)], axis=0)
    return np.concatenate(
        [*reduced, of(20, ring[ring.index(rank) - 1]), of(21) ** 2, of(22, (rank + 2) % 4), whole]
    )
