"""Ranks that call different things where all must call the same: an error that names both ranks and both calls."""

from collections.abc import Callable

import pytest

from runtime import DPPolicy, dtypes, torch
from runtime.errors import CollectiveMismatchError, InvariantError
from tests.support.topologies import variant_text
from tests.support.world import simulate

dist = torch.distributed
TWO_PES = variant_text(
    sip__cube_mesh={"w": 1, "h": 1}, cube__pe_layout__pe_per_corner=1, cube__pe_layout__corners=["NW", "NE"]
)  # fmt: skip
SPREAD = DPPolicy(pe="column_wise")


def mismatch(program: Callable[[int], object], sips: int = 2) -> str:
    def whole(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        program(rank)

    with pytest.raises(CollectiveMismatchError) as raised:
        simulate(whole, sips, topology=TWO_PES)
    return str(raised.value)


def reduced(*size: int, op: dist.ReduceOp = dist.ReduceOp.SUM, dtype: dtypes.DType = torch.float32) -> None:
    dist.all_reduce(torch.ones(*size, dtype=dtype), op)


def test_another_operation_is_named_on_both_ranks() -> None:
    text = mismatch(lambda rank: reduced(8, op=dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM))
    assert text.splitlines() == [
        "Detected mismatch between collectives on ranks: every rank of a group makes the same calls in one order",
        "  rank 0 is in world #1: all_reduce(f32 (8,) on cube 0 pe 0, op sum)",
        "  rank 1 is in world #1: all_reduce(f32 (8,) on cube 0 pe 0, op max)",
    ]


@pytest.mark.parametrize(
    ("program", "own", "other"),
    [
        (lambda rank: reduced(4 + rank), "(4,)", "(5,)"),
        (lambda rank: reduced(4 - 2 * rank, 1 + rank), "(4, 1)", "(2, 2)"),
        (lambda rank: reduced(4, dtype=torch.int32 if rank else torch.float32), "f32 (4,)", "i32 (4,)"),
        (
            lambda rank: dist.all_reduce(torch.ones(4, dp=SPREAD if rank else DPPolicy())),
            "on 2 PEs with 16 B,",
            "on 2 PEs with 8 B,",
        ),
        (lambda rank: dist.reduce(torch.ones(4), rank), "root 0)", "root 1)"),
        (lambda rank: dist.barrier() if rank else reduced(1), "all_reduce(f32 (1,)", "barrier(f32 (1,)"),
        (lambda rank: dist.broadcast(torch.ones(4), 0) if rank else reduced(4), "all_reduce(f32 (4,)", "broadcast(f32 (4,)"),
    ],
    ids=["size", "shape", "type", "placement", "root", "barrier", "collective"],
)
def test_whatever_differs_is_named(program: Callable[[int], object], own: str, other: str) -> None:
    _, first, second = mismatch(program).splitlines()
    assert "rank 0 is in world #1: " in first
    assert own in first
    assert "rank 1 is in world #1: " in second
    assert other in second


def test_another_order_is_named_at_the_first_call_that_differs() -> None:
    def program(rank: int) -> None:
        reduced(2)
        for size in (4, 8) if rank else (8, 4):
            reduced(size)

    text = mismatch(program)
    assert "rank 0 is in world #2: all_reduce(f32 (8,)" in text
    assert "rank 1 is in world #2: all_reduce(f32 (4,)" in text


def test_a_receive_of_another_shape_than_was_sent_is_named() -> None:
    def program(rank: int) -> None:
        dist.recv(torch.ones(4, 2), 0) if rank else dist.send(torch.ones(2, 4), 1)

    text = mismatch(program)
    assert "rank 0 is in world rank 0 to 1 #1: f32 (2, 4)" in text
    assert "rank 1 is in world rank 0 to 1 #1: f32 (4, 2)" in text


def test_three_ranks_of_which_one_has_another_root_are_told_apart() -> None:
    text = mismatch(lambda rank: dist.broadcast(torch.ones(2), int(rank == 1)), sips=3)
    assert "root 0)" in text
    assert "root 1)" in text


def test_what_nobody_received_is_told_with_the_call_it_belongs_to() -> None:
    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        # With two ranks both roots send and nobody receives.
        dist.broadcast(torch.ones(2), rank)

    told = (
        r"world/ring global_W: 1 slot from sip 1 .* was never received, the first one of .*root 1\); "
        r"the last call here was .*root 0\)"
    )
    with pytest.raises(InvariantError, match=told):
        simulate(program, 2, topology=TWO_PES)
