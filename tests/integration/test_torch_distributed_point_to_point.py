"""Send, receive and work handles: which ranks are reachable, and when an operation completes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime import DPPolicy, tl, torch
from tests.support.groups import ranks

dist = torch.distributed


@pytest.mark.parametrize("sips", [2, 3, 4])
@pytest.mark.parametrize("step", [1, -1])
def test_a_tensor_goes_to_either_neighbour_shard_by_shard(sips: int, step: int) -> None:
    def program(rank: int) -> np.ndarray:
        placement = DPPolicy(cube="row_wise", pe="column_wise")
        mine, theirs = (
            torch.full((4, 6), float(rank), dp=placement),
            torch.zeros(4, 6, dp=placement),
        )
        dist.isend(mine, (rank + step) % sips)
        assert dist.recv(theirs, (rank - step) % sips) == (rank - step) % sips
        return theirs.numpy()

    for rank, values in enumerate(ranks(program, sips)):
        assert (values == (rank - step) % sips).all()


@pytest.mark.parametrize("sips", [2, 3])
def test_a_batch_sends_more_than_the_rings_hold_between_all_neighbours(sips: int) -> None:
    # 20,000 bytes a message, 16 KiB a ring.
    def program(rank: int) -> list[float]:
        mine, theirs = [
            [torch.full(5000, 10 * rank + way if sent else 0) for way in (0, 1)]
            for sent in (True, False)
        ]
        ahead, behind = (rank + 1) % sips, (rank - 1) % sips
        operations = [
            dist.P2POp(dist.isend, mine[0], ahead),
            dist.P2POp(dist.isend, mine[1], group_peer=behind),
            dist.P2POp(dist.irecv, theirs[0], behind),
            dist.P2POp(dist.irecv, theirs[1], ahead),
        ]
        for work in dist.batch_isend_irecv(operations):
            assert work.wait()
        return [
            float(value) for each in theirs for value in (each.numpy().min(), each.numpy().max())
        ]

    for rank, found in enumerate(ranks(program, sips)):
        behind, ahead = 10 * ((rank - 1) % sips), 10 * ((rank + 1) % sips) + 1
        # Of two ranks each is on both sides of the other, and messages keep their order.
        assert found == [behind, behind, ahead, ahead]


def test_a_batch_takes_tensors_on_any_pes() -> None:
    def program(rank: int) -> list[float]:
        spread, single = DPPolicy(cube="row_wise", pe="row_wise"), DPPolicy()
        tensors = [torch.full((8, 2), rank + 1, dp=policy) for policy in (spread, single)]
        kinds = (dist.isend, dist.irecv) if rank == 0 else (dist.irecv, dist.isend)
        for work in dist.batch_isend_irecv(
            [dist.P2POp(kind, each, 1 - rank) for kind, each in zip(kinds, tensors, strict=True)]
        ):
            work.wait()
        return [float(each.numpy().mean()) for each in tensors]

    assert ranks(program, 2) == [[1, 2], [1, 2]]


def test_a_batch_of_what_is_no_operation_is_an_error() -> None:
    with pytest.raises(
        ValueError,
        match="batch_isend_irecv of 0 operations: it takes at least one, all of one group",
    ):
        ranks(lambda rank: dist.batch_isend_irecv([]), 2)
    with pytest.raises(
        TypeError, match=r"Each op is expected to be of type torch.distributed.P2POp, not tuple"
    ):
        ranks(lambda rank: dist.batch_isend_irecv([(dist.isend, torch.zeros(2), 1 - rank)]), 2)
    with pytest.raises(ValueError, match=r"Expected ``op`` to be torch.distributed.isend or irecv"):
        ranks(lambda rank: dist.P2POp(dist.send, torch.zeros(2), 1 - rank), 2)


def test_a_batch_matches_single_operations_of_the_peer() -> None:
    def program(rank: int) -> list[float]:
        tensors = [torch.full((4,), 0.0 if rank else number + 1.0) for number in range(3)]
        if rank == 0:
            works = dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1) for x in tensors])
            assert len(works) == 3
        else:
            work = dist.irecv(tensors[0], 0)
            dist.recv(tensors[1], 0)
            dist.recv(tensors[2], 0)
            assert work is not None
            work.wait()
        return [float(x.numpy().mean()) for x in tensors]

    assert ranks(program, 2) == [[1, 2, 3]] * 2


def test_any_two_ranks_of_a_group_can_exchange_messages() -> None:
    def program(rank: int) -> float:
        tensor = torch.full(5, float(rank))
        if rank == 0:
            dist.send(tensor, 2)
        elif rank == 2:
            dist.recv(tensor, 0)
        return float(tensor.numpy()[0])

    assert ranks(program, 4) == [0, 1, 0, 3]


def test_send_and_receive_work_beside_any_algorithm_and_on_any_pe() -> None:
    def program(rank: int) -> float:
        tensor = torch.full(2, float(rank))
        if rank == 0:
            dist.send(tensor, 1)
        else:
            dist.recv(tensor, 0)
        return float(tensor.numpy()[0])

    assert ranks(program, 2, "intercube") == [0, 0]


@pytest.mark.parametrize(
    "call",
    [
        lambda tensor, other: dist.all_reduce(tensor, async_op=True),
        lambda tensor, other: dist.reduce(tensor, 1, async_op=True),
        lambda tensor, other: dist.broadcast(tensor, 1, async_op=True),
        lambda tensor, other: dist.all_gather([other, torch.empty(4)], tensor, async_op=True),
        lambda tensor, other: dist.all_gather_into_tensor(torch.empty(8), tensor, async_op=True),
        lambda tensor, other: dist.reduce_scatter_tensor(torch.empty(2), tensor, async_op=True),
        lambda tensor, other: dist.all_to_all_single(other, tensor, async_op=True),
        lambda tensor, other: dist.barrier(async_op=True),
        lambda tensor, other: (
            dist.isend(tensor, 1) if dist.get_rank() == 0 else dist.irecv(tensor, 0)
        ),
    ],
    ids=[
        "all_reduce",
        "reduce",
        "broadcast",
        "all_gather",
        "all_gather_into_tensor",
        "reduce_scatter_tensor",
        "all_to_all_single",
        "barrier",
        "isend and irecv",
    ],
)
def test_a_work_handle_is_complete_when_the_stream_that_waits_for_it_is_and_has_its_time(
    call: Callable[[torch.Tensor, torch.Tensor], Any],
) -> None:
    def program(rank: int) -> tuple[bool, int, bool, bool, int, bool]:
        # Copies of the host: a fill would have mapped the tensors.
        tensor, other = torch.tensor([float(rank)] * 4), torch.tensor([0.0] * 4)
        torch.ahbm.synchronize()
        before_ps = torch.ahbm.elapsed_ps()
        work = call(tensor, other)
        queued = work.is_completed(), torch.ahbm.elapsed_ps() - before_ps
        waited = work.wait(), work.is_completed(), torch.ahbm.elapsed_ps()
        torch.ahbm.synchronize()
        return (
            *queued,
            *waited,
            work.is_completed()
            and work.handle.completed_ps == torch.ahbm.elapsed_ps()
            and work.handle.total_ps > 0,
        )

    for done_before, queued_ps, waited, done_after, after_ps, costed in ranks(program, 2):
        assert (done_before, queued_ps) == (False, 0)
        assert (waited, costed) == (True, True)
        # The stream waits, and not the rank.
        assert (done_after, after_ps > 0) == (False, True)


def test_without_async_op_there_is_no_handle() -> None:
    assert ranks(lambda rank: dist.all_reduce(torch.zeros(4)), 2) == [None, None]


def test_works_of_a_rank_complete_in_the_order_of_the_calls() -> None:
    def program(rank: int) -> tuple[bool, bool]:
        first, second = torch.ones(64), torch.ones(64)
        works = dist.all_reduce(first, async_op=True), dist.broadcast(second, 0, async_op=True)
        assert all(work is not None for work in works)
        first.numpy()
        order = works[0].is_completed(), works[1].is_completed()
        second.numpy()
        assert works[1].is_completed()
        return order

    assert ranks(program, 2) == [(True, False)] * 2


def test_a_kernel_between_two_collectives_reads_the_first_and_feeds_the_second() -> None:
    def double(x: tl.Pointer, n: int) -> None:
        tl.store(x, tl.load(x, n) * 2)

    def program(rank: int) -> float:
        tensor = torch.full(5, float(rank) + 1)
        dist.all_reduce(tensor, async_op=True)
        torch.launch("double", double, tensor, 5)
        dist.all_reduce(tensor, dist.ReduceOp.MAX, async_op=True)
        return float(tensor.numpy()[0])

    assert ranks(program, 3) == [12, 12, 12]


def test_an_asynchronous_barrier_completes_after_the_last_rank_has_come() -> None:
    def program(rank: int) -> tuple[int, int]:
        if rank == 0:
            torch.zeros(20_000)
            torch.ahbm.synchronize()
        came_ps = torch.ahbm.elapsed_ps()
        work = dist.barrier(async_op=True)
        assert work is not None
        work.wait()
        torch.ahbm.synchronize()
        return came_ps, torch.ahbm.elapsed_ps()

    came_ps, left_ps = zip(*ranks(program, 3), strict=True)
    assert min(left_ps) > max(came_ps)
