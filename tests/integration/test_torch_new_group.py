"""Process groups of some ranks: members, collectives, and addresses of the queues."""

from collections.abc import Callable
from typing import Any

import pytest

from runtime import torch
from tests.support.topologies import variant_text
from tests.support.world import simulate

dist = torch.distributed
ONE_PE = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW"],
)


def ranks(program: Callable[[int], Any], sips: int = 4) -> list[Any]:
    def whole(rank: int) -> Any:
        dist.init_process_group("ahbm")
        return program(rank)

    returned = simulate(whole, sips, topology=ONE_PE).returned
    return [returned[rank] for rank in range(sips)]


def total(value: float, group: Any = None) -> float:
    tensor = torch.full(3, value)
    dist.all_reduce(tensor, group=group)
    return float(tensor.numpy()[0])


def test_a_collective_of_a_group_combines_its_members_alone() -> None:
    def program(rank: int) -> float:
        even, odd = dist.new_group([0, 2]), dist.new_group([1, 3])
        return total(10**rank, odd if rank % 2 else even)

    assert ranks(program) == [101, 1010, 101, 1010]


def test_groups_that_share_a_rank_have_separate_queues() -> None:
    def program(rank: int) -> tuple[float, ...]:
        # Rank 0 is in both groups, so its rings of the second group are at lower addresses than
        # those of rank 2, which is in one group.
        first, second = dist.new_group([0, 1]), dist.new_group([0, 2])
        found = [
            total(1, group)
            for group, members in ((first, (0, 1)), (second, (0, 2)), (first, (0, 1)))
            if rank in members
        ]
        return (*found, total(1))

    assert ranks(program, 3) == [(2, 2, 2, 3), (2, 2, 3), (2, 3)]


def test_ranks_of_a_group_are_numbered_in_rising_order_and_named_by_global_rank() -> None:
    def program(rank: int) -> tuple[Any, ...]:
        group = dist.new_group([3, 1])
        if rank not in (1, 3):
            return (
                dist.get_rank(group),
                dist.get_world_size(group),
                group is dist.GroupMember.NON_GROUP_MEMBER,
            )
        facts = (
            dist.get_rank(group),
            dist.get_world_size(group),
            dist.get_process_group_ranks(group),
        )
        return (*facts, dist.get_group_rank(group, 3), dist.get_global_rank(group, 0))

    member = (2, [1, 3], 1, 1)
    assert ranks(program) == [(-1, -1, True), (0, *member), (-1, -1, True), (1, *member)]


def test_roots_are_global_ranks() -> None:
    def program(rank: int) -> float:
        group = dist.new_group([1, 2, 3])
        tensor = torch.full(2, rank)
        if rank:
            dist.broadcast(tensor, 3, group)
        return float(tensor.numpy()[0])

    assert ranks(program) == [0, 3, 3, 3]


def test_send_and_receive_take_global_ranks_too() -> None:
    def program(rank: int) -> float:
        group = dist.new_group([1, 3])
        tensor = torch.full(2, rank)
        if rank == 1:
            dist.send(tensor, 3, group)
        if rank == 3:
            dist.recv(tensor, 1, group)
        return float(tensor.numpy()[0])

    assert ranks(program) == [0, 1, 2, 1]


def test_a_call_of_a_rank_outside_warns_and_does_nothing() -> None:
    def program(rank: int) -> float:
        group = dist.new_group([0])
        if rank == 0:
            return total(5, group)
        with pytest.warns(
            UserWarning,
            match="Running all_reduce on global rank 1 which does not belong to the given group",
        ):
            return total(7, group)

    assert ranks(program, 2) == [5, 7]


def test_a_group_of_the_same_ranks_uses_the_queues_again() -> None:
    def program(rank: int) -> tuple[str, ...]:
        return tuple(dist.new_group().base.name for _ in range(2))

    assert ranks(program, 2) == [("world/ring", "world/ring")] * 2


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ([], r"new_group of ranks \[\]: it takes at least one rank, and each once"),
        ([1, 1], r"new_group of ranks \[1, 1\]: it takes at least one rank, and each once"),
        ([0, 4], r"new_group of ranks \[0, 4\]: the default process group has ranks 0 to 3"),
    ],
)
def test_ranks_that_cannot_be_a_group_are_an_error(members: list[int], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ranks(lambda rank: dist.new_group(members))


def test_a_group_that_was_destroyed_is_an_error_that_names_it() -> None:
    def program(rank: int) -> None:
        group = dist.new_group([0, 1])
        dist.destroy_process_group(group)
        total(1, group)

    complaint = (
        "Invalid process group specified: group1 of ranks 0 to 1 was destroyed; make another "
        "one with new_group"
    )
    with pytest.raises(ValueError, match=complaint):
        ranks(program, 2)


def test_the_end_of_the_default_group_ends_all_others() -> None:
    def program(rank: int) -> None:
        group = dist.new_group([0, 1])
        dist.destroy_process_group()
        dist.init_process_group("ahbm")
        total(1, group)

    with pytest.raises(ValueError, match="group1 of ranks 0 to 1 was destroyed"):
        ranks(program, 2)


def test_a_rank_outside_has_nothing_to_destroy() -> None:
    def program(rank: int) -> float:
        dist.destroy_process_group(dist.new_group([0]))
        return total(1)

    assert ranks(program, 2) == [2, 2]


def test_a_group_is_shown_by_its_ranks_and_algorithm() -> None:
    shown = ranks(lambda rank: (repr(dist.new_group([0])), repr(dist.new_group([0, 2, 3]))))[0]
    assert shown == (
        "<ProcessGroup group1 of rank 0, algorithm auto>",
        "<ProcessGroup group2 of ranks 0, 2, 3, algorithm auto>",
    )


def test_a_rank_of_the_group_may_be_named_by_its_index() -> None:
    def program(rank: int) -> tuple[float, ...]:
        group, found = dist.new_group([1, 3]), []
        for call in (dist.broadcast, dist.reduce):
            tensor = torch.full(2, rank)
            if rank in (1, 3):
                call(
                    tensor,
                    group=group,
                    **{"group_src" if call is dist.broadcast else "group_dst": 1},
                )
            found.append(float(tensor.numpy()[0]))
        return tuple(found)

    assert ranks(program) == [(0, 0), (3, 1), (2, 2), (3, 4)]


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ({"src": 0, "group_src": 1}, "Can't specify both src and group_src: 0 and 1"),
        ({}, "Must specify src or group_src: the root rank"),
        (
            {"group_src": 2},
            "Invalid root rank: 2; the process group has ranks 1, 3, in the group 0 to 1",
        ),
    ],
)
def test_a_root_has_either_its_global_rank_or_its_group_rank(
    names: dict[str, int], complaint: str
) -> None:
    def program(rank: int) -> None:
        group = dist.new_group([1, 3])
        if rank in (1, 3):
            dist.broadcast(torch.zeros(2), group=group, **names)

    with pytest.raises(ValueError, match=complaint):
        ranks(program)


def test_a_root_outside_the_group_is_an_error_that_names_its_ranks() -> None:
    def program(rank: int) -> None:
        group = dist.new_group([1, 3])
        if rank in (1, 3):
            dist.broadcast(torch.zeros(2), 0, group)

    with pytest.raises(ValueError, match="Invalid root rank: 0; the process group has ranks 1, 3"):
        ranks(program)


def test_an_argument_that_is_no_group_is_an_error() -> None:
    with pytest.raises(TypeError, match="Expected parameter `group` of type ProcessGroup"):
        ranks(lambda rank: dist.all_reduce(torch.zeros(2), group=[0, 1]), 2)
