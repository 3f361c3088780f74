"""Runs whose ranks form one group of collectives."""

from collections.abc import Callable
from typing import Any

from runtime import torch
from tests.support.topologies import variant_text
from tests.support.world import simulate

FOUR_PES = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "NE"],
)
"""SIPs of two cubes with two PEs each."""


def ranks(program: Callable[[int], Any], sips: int, algorithm: str = "ring") -> list[Any]:
    """The results of the ranks of a group, in their order; every SIP has four PEs."""

    def whole(rank: int) -> Any:
        torch.distributed.init_process_group("ahbm", algorithm=algorithm)
        return program(rank)

    returned = simulate(whole, sips, topology=FOUR_PES).returned
    return [returned[rank] for rank in range(sips)]
