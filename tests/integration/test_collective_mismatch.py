"""Ranks with different calls where all must make the same: the error names ranks and calls."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime import DPPolicy, torch
from runtime.core import dtypes
from runtime.core.errors import CollectiveMismatchError, InvariantError, IpcqDeadlock
from tests.support.topologies import variant_text
from tests.support.world import simulate

dist = torch.distributed
TWO_PES = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "NE"],
)
SPREAD = DPPolicy(pe="column_wise")


def mismatch(program: Callable[[int], object], sips: int = 2) -> str:
    def whole(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        program(rank)

    with pytest.raises(CollectiveMismatchError) as raised:
        simulate(whole, sips, topology=TWO_PES)
    return str(raised.value)


def reduced(
    *size: int, op: dist.ReduceOp = dist.ReduceOp.SUM, dtype: dtypes.DType = torch.float32
) -> None:
    dist.all_reduce(torch.ones(*size, dtype=dtype), op)


def test_another_operation_is_named_on_both_ranks() -> None:
    text = mismatch(lambda rank: reduced(8, op=dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM))
    assert text.splitlines() == [
        (
            "Detected mismatch between collectives on ranks: every rank of a group makes the "
            "same calls in one order"
        ),
        "  rank 0 is in world #1: all_reduce(f32 (8,) on cube 0 pe 0, op sum) by ring",
        "  rank 1 is in world #1: all_reduce(f32 (8,) on cube 0 pe 0, op max) by ring",
    ]


@pytest.mark.parametrize(
    ("program", "own", "other"),
    [
        (lambda rank: reduced(4 + rank), "(4,)", "(5,)"),
        (lambda rank: reduced(4 - 2 * rank, 1 + rank), "(4, 1)", "(2, 2)"),
        (
            lambda rank: reduced(4, dtype=torch.int32 if rank else torch.float32),
            "f32 (4,)",
            "i32 (4,)",
        ),
        (
            lambda rank: dist.all_reduce(torch.ones(4, dp=SPREAD if rank else DPPolicy())),
            "on 2 PEs with 16 B,",
            "on 2 PEs with 8 B,",
        ),
        (lambda rank: dist.reduce(torch.ones(4), rank), "root 0)", "root 1)"),
        (
            lambda rank: dist.barrier() if rank else reduced(1),
            "all_reduce(f32 (1,)",
            "barrier(f32 (1,)",
        ),
        (
            lambda rank: dist.broadcast(torch.ones(4), 0) if rank else reduced(4),
            "all_reduce(f32 (4,)",
            "broadcast(f32 (4,)",
        ),
    ],
    ids=["size", "shape", "type", "placement", "root", "barrier", "collective"],
)
def test_the_difference_is_named(program: Callable[[int], object], own: str, other: str) -> None:
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


def test_another_algorithm_is_named_on_both_ranks() -> None:
    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm=["ring", "tree"][rank])
        reduced(8)

    with pytest.raises(CollectiveMismatchError) as raised:
        simulate(program, 2, topology=TWO_PES)
    assert "op sum) by ring\n" in str(raised.value)
    assert str(raised.value).endswith("op sum) by tree")


def test_groups_made_in_another_order_are_named_with_their_ranks() -> None:
    def program(rank: int) -> None:
        orders = ([0, 1], [1, 2]) if rank else ([1, 2], [0, 1])
        groups = {tuple(members): dist.new_group(members) for members in orders}
        # Their rings are allocated in another order, too: no message is received, and both wait.
        dist.all_reduce(torch.ones(2), group=groups[0, 1])

    _, first, second = mismatch(
        lambda rank: program(rank) if rank < 2 else None, sips=3
    ).splitlines()
    assert first.startswith("  rank 0 is in group2 of ranks 0 to 1 #1: all_reduce(")
    assert second.startswith("  rank 1 is in group1 of ranks 0 to 1 #1: all_reduce(")


def test_the_line_of_the_program_is_named_where_the_traceback_ends_in_the_kernel() -> None:
    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        reduced(8, op=dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM)

    with pytest.raises(CollectiveMismatchError) as raised:
        simulate(program, 2, topology=TWO_PES)
    (note,) = raised.value.__notes__
    line = next(
        at
        for at, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if text.startswith("    dist.all_reduce")
    )
    assert note == (
        f"in kernel 'all_reduce.ring' on sip 1 cube 0 pe 0, launched at "
        f"tests/integration/test_collective_mismatch.py:{line}"
    )


def test_a_rank_without_the_call_is_named_with_the_line_of_the_calls() -> None:
    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        if rank:
            dist.barrier()

    with pytest.raises(IpcqDeadlock) as raised:
        simulate(program, 2, topology=TWO_PES)
    (waiting,) = raised.value.pes
    assert re.search(
        (
            r" at \S+message_pipeline.py:\d+, called at "
            r"tests/integration/test_collective_mismatch.py:\d+, in world #1: "
        ),
        waiting,
    )
    assert raised.value.waits[0].endswith("rank 0 has finished its program")


def test_one_of_three_ranks_with_another_root_is_named() -> None:
    text = mismatch(lambda rank: dist.broadcast(torch.ones(2), int(rank == 1)), sips=3)
    assert "root 0)" in text
    assert "root 1)" in text


def test_slots_without_a_receive_are_reported_with_their_call() -> None:
    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        # With two ranks both roots send and neither receives.
        dist.broadcast(torch.ones(2), rank)

    told = (
        r"world/ring global_W: 1 slot from sip 1 .* was never received, the first one of "
        r".*root 1\) by ring; "
        r"the last call here was .*root 0\) by ring"
    )
    with pytest.raises(InvariantError, match=told):
        simulate(program, 2, topology=TWO_PES)
