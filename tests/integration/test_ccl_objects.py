"""Object collectives on simulated chips."""

from collections.abc import Callable
from typing import Any

import pytest

from runtime import torch
from tests.support.topologies import variant_text
from tests.support.world import simulate

dist = torch.distributed
LONE_PE = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW"],
)


def config(rank: int) -> dict[str, Any]:
    """An object whose size differs from rank to rank."""
    return {"rank": rank, "name": "x" * (300 * rank), "shape": (rank, 2), "tags": {rank, "é"}}


def returned(worker: Callable[[int], Any], sips: int = 3, **options: Any) -> list[Any]:
    def program(rank: int) -> Any:
        dist.init_process_group("AHBM")
        return worker(rank)

    found = simulate(program, sips, topology=LONE_PE, **options).returned
    return [found[rank] for rank in range(sips)]


def test_every_rank_gets_the_objects_of_all_ranks() -> None:
    def worker(rank: int) -> list[Any]:
        objects = [None] * 3
        dist.all_gather_object(objects, config(rank))
        return objects

    assert returned(worker) == [[config(rank) for rank in range(3)]] * 3


def test_a_list_of_objects_is_broadcast_from_any_rank_of_a_group() -> None:
    def worker(rank: int) -> list[Any] | None:
        group = dist.new_group([1, 2])
        if rank == 0:
            return None
        objects = [config(rank), rank, None]
        dist.broadcast_object_list(objects, 2, group)
        return objects

    assert returned(worker) == [None, *[[config(2), 2, None]] * 2]


def test_objects_are_gathered_and_scattered_by_one_rank() -> None:
    def worker(rank: int) -> tuple[Any, ...]:
        gathered = [None] * 3 if rank == 1 else None
        dist.gather_object(config(rank), gathered, 1)
        own = [None]
        dist.scatter_object_list(own, gathered[::-1] if gathered else None, 1)
        return gathered, own

    everything = [config(rank) for rank in range(3)]
    assert returned(worker) == [
        (None, [config(2)]),
        (everything, [config(1)]),
        (None, [config(0)]),
    ]


def test_a_list_of_objects_is_sent_to_one_rank_of_a_group() -> None:
    def worker(rank: int) -> tuple[list[int], list[Any]] | None:
        group = dist.new_group([0, 2])
        if rank == 0:
            # A send returns before its receive is called, and its bytes live on.
            dist.send_object_list((config(2), [], "é"), 2, group)
            dist.send_object_list([1], group=group, group_dst=1)
        if rank != 2:
            return None
        first, second = [None] * 3, [None]
        senders = [
            dist.recv_object_list(first, 0, group),
            dist.recv_object_list(second, 0, group),
        ]
        return senders, [*first, *second]

    assert returned(worker) == [None, None, ([0, 0], [config(2), [], "é", 1])]


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (
            lambda: dist.all_gather_object([None] * 2, {"f": [len]}),
            r"obj\['f'\]\[0\] is a builtin_function_or_method, which cannot be sent",
        ),
        (
            lambda: dist.all_gather_object([None], 1),
            "all_gather_object: object_list has 1 objects, the group has 2 ranks",
        ),
        (
            lambda: dist.gather_object(1, [None, None], 0),
            "Argument ``object_gather_list`` must NOT be specified on non-destination ranks.",
        ),
        (
            lambda: dist.gather_object(1, None, dist.get_rank()),
            "Argument ``object_gather_list`` must be specified on destination rank.",
        ),
        (
            lambda: dist.scatter_object_list([], [1, 2]),
            "Expected argument scatter_object_output_list to be a list of size at least 1.",
        ),
        (
            lambda: dist.send_object_list({1: 2}, 1),
            "send_object_list: object_list must be a list, not dict",
        ),
        (
            lambda: dist.recv_object_list((1,), 1),
            "recv_object_list: object_list must be a list, not tuple",
        ),
        (
            lambda: dist.recv_object_list([], 1),
            "recv_object_list: object_list is empty",
        ),
    ],
)
def test_wrong_operands_are_refused(call: Callable[[], None], complaint: str) -> None:
    with pytest.raises((TypeError, ValueError), match=complaint):
        returned(lambda rank: call(), 2)


def test_objects_need_a_run_with_data() -> None:
    with pytest.raises(RuntimeError, match=r"all_gather_object: a run without data .* no bytes"):
        returned(lambda rank: dist.all_gather_object([None] * 2, rank), 2, data=False)


def test_a_rank_outside_the_group_is_warned_at_its_own_line() -> None:
    def worker(rank: int) -> str | None:
        group = dist.new_group([0])
        if rank == 0:
            return None
        with pytest.warns(UserWarning, match="Running all_gather_object on global rank 1") as found:
            dist.all_gather_object([None], rank, group)
        return found[0].filename

    assert returned(worker, 2) == [None, __file__]
