"""Rendezvous of sends and receives: any order of posting, what runs beside, what never ends."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from runtime import DPPolicy, tl, torch
from runtime.core.errors import CollectiveMismatchError, IpcqDeadlock
from tests.support.groups import ranks

dist = torch.distributed


@pytest.mark.parametrize("numel", [1, 4096, 262_144])
@pytest.mark.parametrize("receives_first", [True, False])
def test_two_ranks_that_post_both_operations_exchange_any_size_in_any_order(
    numel: int, receives_first: bool
) -> None:
    def program(rank: int) -> list[float]:
        mine, theirs = torch.full((numel,), rank + 1.0), torch.zeros(numel)
        posts = [lambda: dist.irecv(theirs, 1 - rank), lambda: dist.isend(mine, 1 - rank)]
        works = [post() for post in (posts if receives_first else reversed(posts))]
        assert all(work.wait() for work in works)
        return [float(theirs.numpy().min()), float(theirs.numpy().max())]

    assert ranks(program, 2) == [[2, 2], [1, 1]]


@pytest.mark.parametrize("sips", [2, 3, 4])
def test_the_ring_of_the_tutorial_sends_to_the_right_and_receives_from_the_left(sips: int) -> None:
    def program(rank: int) -> list[float]:
        mine, theirs = torch.full((16_384,), float(rank)), torch.zeros(16_384)
        request = dist.isend(mine, (rank + 1) % sips)
        dist.recv(theirs, (rank - 1) % sips)
        assert request is not None
        request.wait()
        return [float(theirs.numpy().min()), float(theirs.numpy().max())]

    assert ranks(program, sips) == [[(rank - 1) % sips] * 2 for rank in range(sips)]


def test_tags_select_messages_in_any_order_and_equal_tags_keep_theirs() -> None:
    # A tag of numpy, or True, is the integer that it equals.
    tags = [4, True, np.int64(4), 0]

    def program(rank: int) -> list[float]:
        tensors = [torch.full((5000,), 0.0 if rank else number + 1.0) for number in range(4)]
        if rank == 0:
            works = [dist.isend(x, 1, tag=tag) for x, tag in zip(tensors, tags, strict=True)]
        else:
            works = [dist.irecv(tensors[number], 0, tag=tags[number]) for number in (3, 0, 1)]
            dist.recv(tensors[2], 0, tag=4)
        assert all(work.wait() for work in works)
        return [float(x.numpy().mean()) for x in tensors]

    # The receives with tag 4 are posted in the order of their sends, the others before and between.
    assert ranks(program, 2) == [[1, 2, 3, 4]] * 2


def test_messages_of_two_groups_of_the_same_ranks_do_not_mix() -> None:
    def program(rank: int) -> list[float]:
        groups = [None, dist.new_group([0, 1]), dist.new_group([0, 1])]
        tensors = [torch.full((5000,), 0.0 if rank else number + 1.0) for number in range(3)]
        order = (2, 0, 1) if rank else (0, 1, 2)
        post = dist.irecv if rank else dist.isend
        works = [post(tensors[number], 1 - rank, group=groups[number]) for number in order]
        assert all(work.wait() for work in works)
        return [float(x.numpy().mean()) for x in tensors]

    assert ranks(program, 2) == [[1, 2, 3]] * 2


def test_many_operations_are_open_at_once_between_all_ranks() -> None:
    def program(rank: int) -> bool:
        others = [other for other in range(4) if other != rank]
        sent = {other: torch.full((3000,), 10.0 * rank + other) for other in others}
        taken = {
            (other, number): torch.zeros(3000) for other in others for number in reversed(range(6))
        }
        works = [dist.irecv(x, other, tag=number) for (other, number), x in taken.items()]
        # One tensor is sent six times at once: sends only read it.
        works += [
            dist.isend(sent[other], other, tag=number) for number in range(6) for other in others
        ]
        assert all(work.wait() for work in works)
        return all((x.numpy() == 10.0 * other + rank).all() for (other, _), x in taken.items())

    assert all(ranks(program, 4))


def test_windows_of_one_tensor_are_received_side_by_side() -> None:
    # Rank 2 sends to rank 1 before rank 0, which posts the receive from rank 1 first.
    def program(rank: int) -> list[float]:
        whole = torch.full((2, 6000), float(rank))
        if rank == 0:
            for other in (1, 2):
                dist.irecv(whole.narrow(0, other - 1, 1), other).wait()
        elif rank == 1:
            dist.recv(torch.zeros(12_000), 2)
            dist.send(whole.narrow(0, 0, 1), 0)
        else:
            done = dist.isend(whole.narrow(0, 1, 1), 0)
            dist.send(whole, 1)
            done.wait()
        return [float(row.mean()) for row in whole.numpy()]

    assert ranks(program, 3)[0] == [1, 2]


def test_shapes_and_placements_of_both_ends_may_differ() -> None:
    spread = DPPolicy(cube="row_wise", pe="row_wise")

    def program(rank: int) -> np.ndarray | None:
        if rank == 0:
            values = np.arange(12_000, dtype=np.float32).reshape(40, 300)
            dist.send(torch.from_numpy(values), 1)
            return None
        tensor = torch.zeros(100, 120, dp=spread)
        dist.recv(tensor, 0)
        return tensor.numpy()

    assert (ranks(program, 2)[1].reshape(-1) == np.arange(12_000)).all()


def test_a_message_without_elements_is_received_like_any_other() -> None:
    def program(rank: int) -> int:
        tensor = torch.zeros(0)
        dist.recv(tensor, 0) if rank else dist.send(tensor, 1)
        torch.ahbm.synchronize()
        return torch.ahbm.elapsed_ps()

    assert min(ranks(program, 2)) > 0


def test_operations_run_beside_a_collective_and_a_kernel_of_the_same_pes() -> None:
    def spin(x: tl.Pointer) -> None:
        for _ in range(3):
            with tl.scratch():
                tl.zeros(200_000, tl.int8)
        tl.store(x, tl.load(x, 8) + 1)

    def program(rank: int) -> tuple[list[float], dict[str, tuple[int, int]]]:
        mine, theirs = torch.full((20_000,), float(rank)), torch.zeros(20_000)
        summed, counted = torch.ones(50_000), torch.zeros(8)
        with torch.ahbm.profile() as profile:
            works = [dist.irecv(theirs, 1 - rank), dist.isend(mine, 1 - rank)]
            reduced = dist.all_reduce(summed, async_op=True)
            assert reduced is not None
            torch.launch("spin", spin, counted)
        assert [work.is_completed() for work in [*works, reduced]] == [True] * 3
        runs = {
            record.engine: (record.start_ps, record.end_ps)
            for record in profile.records
            if record.engine.startswith("pe_cpu") and (record.cube, record.pe) == (0, 0)
        }
        return [float(x.numpy().mean()) for x in (theirs, summed, counted)], runs

    for rank, (found, runs) in enumerate(ranks(program, 2)):
        assert found == [1 - rank, 2, 1]
        # All three threads of a PE are busy at one time.
        assert max(start for start, _ in runs.values()) < min(end for _, end in runs.values())
        assert set(runs) == {"pe_cpu", "pe_cpu.collective", "pe_cpu.transfer"}


@pytest.mark.parametrize("numel", [1, 40_000])
def test_ranks_that_send_before_they_receive_are_a_deadlock_with_a_hint(numel: int) -> None:
    def program(rank: int) -> None:
        tensor = torch.zeros(numel)
        dist.send(tensor, 1 - rank)
        dist.recv(tensor, 1 - rank)

    with pytest.raises(IpcqDeadlock) as raised:
        ranks(program, 2)
    cycle, hint, first, second = raised.value.waits
    assert cycle == "cycle: rank 0 send to rank 1 -> rank 1 send to rank 0 -> (back)"
    assert hint.startswith("hint: each of these ranks sends before its receive is posted: ")
    assert "batch_isend_irecv" in hint
    line = r"at \S+test_torch_distributed_rendezvous.py:\d+"
    assert re.fullmatch(
        rf"rank 0: send to rank 1, tag 0, {numel:,} elements of f32, {line}: "
        rf"rank 1 calls recv {line}, behind its send to rank 0 {line}",
        first,
    )
    assert second.startswith("rank 1: send to rank 0")


def test_a_message_without_its_other_end_names_the_tags_that_are_there() -> None:
    def program(rank: int) -> None:
        tensor, other = torch.zeros(4), torch.zeros(4)
        if rank == 0:
            dist.isend(tensor, 1, tag=3)
            dist.isend(other, 1, tag=4)
        else:
            dist.recv(tensor, 0, tag=5)

    with pytest.raises(IpcqDeadlock) as raised:
        ranks(program, 2)
    sends = [line for line in raised.value.waits if line.startswith("rank 0")]
    [receive] = [line for line in raised.value.waits if line.startswith("rank 1")]
    assert [line.rpartition(": ")[2] for line in sends] == [
        "rank 1 calls receives that wait with tag 5 instead"
    ] * 2
    assert receive.endswith(": rank 0 calls sends that wait with tags 3, 4 instead")
    assert "hint" not in "".join(raised.value.waits)


def test_a_receive_without_a_send_names_the_rank_that_has_finished() -> None:
    def program(rank: int) -> None:
        if rank:
            dist.recv(torch.zeros(4), 0, tag=7)

    with pytest.raises(IpcqDeadlock, match=r"rank 1: recv from rank 0, tag 7, .*: rank 0 calls no"):
        ranks(program, 2)


@pytest.mark.parametrize(
    ("of_receive", "second"),
    [
        (lambda: torch.zeros(5), "5 elements of f32"),
        (lambda: torch.zeros(4, dtype=torch.float16), "4 elements of f16"),
        (
            lambda: torch.zeros(2, 2, dp=DPPolicy(pe="column_wise", num_cubes=1)),
            r"shape \(2, 2\) of f32 on 2 PEs with 8 B, cube 0 pe 0 to cube 0 pe 1",
        ),
    ],
    ids=["number", "type", "placement"],
)
def test_a_receive_of_other_elements_names_both_ends(
    of_receive: Callable[[], torch.Tensor], second: str
) -> None:
    def program(rank: int) -> None:
        dist.recv(of_receive(), 0) if rank else dist.send(torch.zeros(4), 1)

    with pytest.raises(
        CollectiveMismatchError,
        match=f"rank 0 sends world rank 0 to 1 #1: 4 elements of f32, at .*\n"
        f"  rank 1 receives world rank 0 to 1 #1: {second}",
    ):
        ranks(program, 2)


def test_ends_on_different_pes_are_a_mismatch_too() -> None:
    def program(rank: int) -> None:
        policy = DPPolicy(pe="replicate" if rank else "column_wise", num_cubes=1)
        tensor = torch.zeros(2, 2, dp=policy)
        dist.recv(tensor, 0) if rank else dist.send(tensor, 1)

    with pytest.raises(CollectiveMismatchError, match="rank 0 sends world rank 0 to 1 #1: shape"):
        ranks(program, 2)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (dist.recv, ValueError, "recv from any rank is not supported"),
        (lambda x: dist.isend(x, 1, tag="a"), TypeError, "tag 'a' of a message must be int"),
        (lambda x: dist.isend(x, 1, tag=-1), RuntimeError, "Tag must be nonnegative, not -1"),
    ],
    ids=["any rank", "tag", "negative tag"],
)
def test_what_a_message_cannot_be_is_an_error_of_the_call(
    call: Callable[[torch.Tensor], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        ranks(lambda rank: None if rank else call(torch.zeros(2)), 2)


def test_a_launch_between_a_receive_and_a_send_is_named_in_the_deadlock() -> None:
    def program(rank: int) -> None:
        sent, received = torch.zeros(4), torch.zeros(4)
        dist.irecv(received, 1 - rank)
        received.fill_(1)
        dist.isend(sent, 1 - rank)

    with pytest.raises(IpcqDeadlock) as raised:
        ranks(program, 2)
    _, hint, first, _ = raised.value.waits
    assert hint.endswith("before the first wait or launch that uses a received tensor")
    assert " and its irecv from rank 0 at " in first


def test_a_send_of_elements_that_an_open_receive_replaces_gets_a_hint() -> None:
    def program(rank: int) -> None:
        tensor = torch.zeros(4)
        dist.irecv(tensor, 1 - rank)
        dist.isend(tensor, 1 - rank)

    with pytest.raises(IpcqDeadlock, match="receive into other elements than those sent"):
        ranks(program, 2)
