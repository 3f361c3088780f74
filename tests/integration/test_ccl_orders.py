"""Collectives on grids of SIPs: the ring follows the links, and results have the order of ranks."""

from typing import Any

import numpy as np
import pytest

from runtime import torch
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

dist = torch.distributed
SIPS, SNAKE = 6, (0, 1, 2, 5, 4, 3)
"""The order of the ring on an open mesh of 3 x 2."""
NUMEL = 96
MESH = variant_text(
    system__sips__topology="mesh_2d_no_wrap",
    system__sips__w=3,
    system__sips__h=2,
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW"],
)


def run(program: Any) -> Simulation:
    def whole(rank: int) -> Any:
        dist.init_process_group("ahbm", algorithm="ring")
        return program(rank)

    return simulate(whole, SIPS, topology=MESH)


def int32(values: Any) -> Any:
    return torch.from_numpy(np.asarray(values, np.int32))


def collectives(rank: int, group: Any, members: list[int]) -> dict[str, list[int]]:
    """Result of every collective at a member, by name; roots are the last member."""
    own, size, root = members.index(rank), len(members), members[-1]
    found: dict[str, Any] = {}

    def keep(name: str, tensor: Any) -> None:
        found[name] = tensor.numpy().tolist()

    tensor = int32([own + 1, 10 * own])
    dist.all_reduce(tensor, group=group)
    keep("all_reduce", tensor)
    tensor = int32([own + 1])
    dist.reduce(tensor, root, group=group)
    keep("reduce", tensor)
    tensor = int32([own])
    dist.broadcast(tensor, root, group=group)
    keep("broadcast", tensor)
    parts = torch.zeros(size, dtype=torch.int32)
    dist.all_gather_into_tensor(parts, int32([own]), group=group)
    keep("all_gather", parts)
    tensor = torch.zeros(1, dtype=torch.int32)
    dist.reduce_scatter_tensor(tensor, int32(range(size)), group=group)
    keep("reduce_scatter", tensor)
    parts = torch.zeros(size, dtype=torch.int32)
    dist.all_to_all_single(parts, int32([100 * own + peer for peer in range(size)]), group=group)
    keep("all_to_all", parts)
    outputs = [torch.zeros(1, dtype=torch.int32) for _ in members]
    dist.gather(int32([own]), outputs if rank == root else None, dst=root, group=group)
    found["gather"] = [int(each.numpy()[0]) for each in outputs]
    inputs = [int32([7 * peer]) for peer in range(size)]
    tensor = torch.zeros(1, dtype=torch.int32)
    dist.scatter(tensor, inputs if rank == root else None, src=root, group=group)
    keep("scatter", tensor)
    return found


def expected(own: int, size: int) -> dict[str, list[int]]:
    last = own == size - 1
    total = size * (size + 1) // 2
    return {
        "all_reduce": [total, 10 * (total - size)],
        "reduce": [total] if last else [own + 1],
        "broadcast": [size - 1],
        "all_gather": list(range(size)),
        "reduce_scatter": [size * own],
        "all_to_all": [100 * peer + own for peer in range(size)],
        "gather": list(range(size)) if last else [0] * size,
        "scatter": [7 * own],
    }


@pytest.mark.parametrize("members", [list(range(SIPS)), [0, 2, 3, 5], [1, 3, 5]])
def test_every_collective_numbers_its_parts_by_rank(members: list[int]) -> None:
    def program(rank: int) -> dict[str, list[int]] | None:
        group = dist.new_group(members)
        return collectives(rank, group, members) if rank in members else None

    returned = run(program).returned
    for own, rank in enumerate(members):
        assert returned[rank] == expected(own, len(members)), rank
        assert returned[rank] is not None


def test_the_ring_of_an_open_mesh_uses_the_links_of_its_cycle_alone() -> None:
    def program(rank: int) -> None:
        dist.all_reduce(torch.full(NUMEL, rank, dtype=torch.int32))

    chips = run(program).node.chips
    sent = {
        (sip, int(port.name.removeprefix("ucie.sip"))): port.nbytes
        for sip, chip in chips.items()
        for port in chip.boundary.ports
    }
    nbytes = 2 * (SIPS - 1) * NUMEL * 4 // SIPS
    forwards = set(zip(SNAKE, SNAKE[1:] + SNAKE[:1], strict=True))
    for link, carried in sent.items():
        backwards = link[::-1] in forwards
        # Elements one way and credits the other way; no other link carries anything.
        assert (carried >= nbytes) == (link in forwards), link
        assert carried == 0 or link in forwards or backwards, link
        assert not backwards or carried < nbytes, link
