"""Every all-reduce on simulated chips with random data, against numpy.

In the chosen set of runs, any two choices of algorithm, number of SIPs, size and kind of queue
occur together. At the end of a run every credit is home, every slot was taken and nothing is in
flight, or `simulate` raises.
"""

from collections.abc import Iterator
from importlib import import_module
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pytest
import yaml

from runtime import DPPolicy, torch
from runtime.ccl.config import parse_ccl
from runtime.ccl.group import Group
from runtime.ccl.reduction import ReduceOp
from runtime.core.config.config_file import default_file
from runtime.core.dtypes import bfloat16, float16, float32, int8, int32
from runtime.core.errors import InvariantError
from runtime.model.placement import ONE_PE
from runtime.model.topology import parse_topology
from sip_node.chip.fabric.packet import Kind as PacketKind
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.pe.ipcq import PeIpcq
from tests.support.reductions import ALGORITHMS, Kind, assert_combined, drawn
from tests.support.topologies import variant_text
from tests.support.world import simulate

dist = torch.distributed

SIPS = (1, 2, 3, 4, 8, 9)
SIZES = ("one element", "several slots", "more than a block")
BUFFERS = ("tcm", "hbm", "sram")
KINDS: list[Kind] = [
    (float16, ReduceOp.SUM),
    (float32, ReduceOp.MAX),
    (float32, ReduceOp.PRODUCT),
    (bfloat16, ReduceOp.AVG),
    (int8, ReduceOp.MIN),
    (int32, ReduceOp.SUM),
]
"""Every type and every operation; `test_ccl_all_reduce` has each type with each operation."""
QUEUES = {"n_slots": 4, "slot_size": 64}

BETWEEN_SIPS: dict[int, dict[str, object]] = {
    4: {"system__sips__topology": "torus_2d"},
    8: {"system__sips__topology": "mesh_2d_no_wrap", "system__sips__w": 4, "system__sips__h": 2},
    9: {"system__sips__topology": "mesh_2d_no_wrap"},
}
"""Topologies in which neighbours of a ring or tree of ranks are not adjacent SIPs.

SIPs between them forward. All other runs use a ring of SIPs.
"""

ON_GRIDS = {("torus", 2): 4, ("torus", 3): 8}
"""The number of SIPs instead of one that has no rows and columns, by algorithm."""

INSIDE: dict[str, tuple[int, list[str], DPPolicy]] = {
    "intercube": (2, ["NW"], DPPolicy(cube="row_wise", num_pes=1)),
    "hierarchical": (2, ["NW", "SE"], DPPolicy(cube="row_wise", pe="row_wise")),
}
"""Cubes, PEs of a cube, and a placement with one row for each PE that contributes."""


class Case(NamedTuple):
    """One run."""

    algorithm: str
    sips: int
    size: str
    buffer: str
    kind: Kind

    def __str__(self) -> str:
        dtype, op = self.kind
        return (
            f"{self.algorithm}, {self.sips} SIPs, {self.size}, {self.buffer}, {dtype!r} {op.value}"
        )

    @property
    def inside(self) -> tuple[int, list[str], DPPolicy]:
        return INSIDE.get(self.algorithm, (1, ["NW"], ONE_PE))

    @property
    def topology(self) -> str:
        cubes, corners, _ = self.inside
        return variant_text(
            sip__cube_mesh={"w": cubes, "h": 1},
            cube__pe_layout__pe_per_corner=1,
            cube__pe_layout__corners=corners,
            system__sips__count=self.sips,
            **BETWEEN_SIPS.get(self.sips, {}),
        )

    @property
    def ccl(self) -> str:
        return with_queues(self.algorithm, buffer_kind=self.buffer, **QUEUES)

    @property
    def numel(self) -> int:
        """Elements of a shard.

        A block is a multiple of 64 bytes. Three quarters of it, less one, is no multiple of 2 or 3,
        hence of no number of SIPs. Its parts fill three of four slots, the last one in part.
        """
        if self.size == "one element":
            return 1
        config = parse_ccl(self.ccl, "ccl.yaml").resolve(self.algorithm)
        group = Group(
            0, tuple(range(self.sips)), config, parse_topology(self.topology, "topology.yaml")
        )
        *_, block = import_module(config.module).arguments(group, self.kind[0].itemsize)
        if not isinstance(block, int):
            # A pipeline without blocks: the slots of a ring are reused.
            block = config.ring_bytes // self.kind[0].itemsize
        several = 3 * block // 4 - 1
        return several if self.size == "several slots" else block + several


def with_queues(algorithm: str, **values: object) -> str:
    """The file that ships, with other queues for one algorithm."""
    content = yaml.safe_load(default_file("ccl.yaml").read_text())
    content["algorithms"][algorithm].update(values)
    return yaml.safe_dump(content)


def cases() -> Iterator[Case]:
    """Each algorithm with each number of SIPs; sizes, buffers and kinds alternate independently."""
    for a, s in product(range(len(ALGORITHMS)), range(len(SIPS))):
        yield Case(
            ALGORITHMS[a],
            ON_GRIDS.get((ALGORITHMS[a], SIPS[s]), SIPS[s]),
            SIZES[(a + s) % 3],
            BUFFERS[(a + 2 * s) % 3],
            KINDS[(a + s + a // 3) % 6],
        )


CASES = list(cases())


def test_any_two_choices_occur_together_and_every_algorithm_has_every_kind() -> None:
    for a, b in combinations(range(4), 2):
        choices = [(ALGORITHMS, SIPS, SIZES, BUFFERS)[at] for at in (a, b)]
        expected = set(product(*choices)) - set(ON_GRIDS)
        assert {(case[a], case[b]) for case in CASES} == expected
    assert {(case.algorithm, case.kind) for case in CASES} == set(product(ALGORITHMS, KINDS))


def test_all_algorithms_of_the_file_are_among_the_runs() -> None:
    assert {*yaml.safe_load(default_file("ccl.yaml").read_text())["algorithms"]} == {
        *ALGORITHMS,
        "pairwise",
        "point_to_point",
    }


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_rank_receives_the_reduction_of_all_contributions_with_the_same_bits(
    case: Case,
) -> None:
    cubes, corners, placement = case.inside
    rows, (_, op) = cubes * len(corners), case.kind
    given = drawn(case.kind, (rows, case.numel), case.sips)

    def program(rank: int) -> np.ndarray:
        dist.init_process_group("ahbm", algorithm=case.algorithm)
        tensor = torch.from_numpy(given[rank], dp=placement)
        dist.all_reduce(tensor, op)
        return tensor.numpy()

    returned = simulate(program, case.sips, topology=case.topology, ccl=case.ccl).returned
    assert_combined(
        case.kind,
        [*np.concatenate(given)],
        [*np.concatenate([returned[rank] for rank in range(case.sips)])],
    )


def test_hierarchical_refuses_a_tensor_without_elements_on_some_pes() -> None:
    case = Case("hierarchical", 1, "one element", "tcm", KINDS[0])

    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="hierarchical")
        dist.all_reduce(torch.zeros(2, 3, dp=DPPolicy(cube="row_wise", num_pes=1)))

    problem = (
        "hierarchical.*needs one shard on each of 4 PEs of 2 cubes, the tensor has 2 shards; "
        "place it with DPPolicy"
    )
    with pytest.raises(ValueError, match=problem):
        simulate(program, 1, topology=case.topology)


class LosesTheLastCredit(PeIpcq):
    """A queue that drops the fourth credit, of the last slot of its ring."""

    credits = 0

    def accept(self, packet: Packet, tail_ps: int) -> None:
        if packet.transfer.kind is PacketKind.IPCQ_CREDIT:
            self.credits += 1
        if packet.transfer.kind is not PacketKind.IPCQ_CREDIT or self.credits != 4:
            super().accept(packet, tail_ps)


@pytest.mark.parametrize("algorithm", ["ring", "tree", "halving_doubling"])
def test_a_lost_credit_ends_the_run_and_names_its_queue(algorithm: str) -> None:
    topology = variant_text(
        sip__cube_mesh={"w": 1, "h": 1},
        cube__pe_layout__pe_per_corner=1,
        cube__pe_layout__corners=["NW"],
        impl={"pe_ipcq": f"{__name__}:{LosesTheLastCredit.__name__}"},
    )

    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm=algorithm)
        dist.all_reduce(torch.ones(64, dtype=int32))

    with pytest.raises(
        InvariantError, match=rf"sip 0 cube 0 pe 0, world/{algorithm} .*: 3 of 4 credits are home"
    ):
        simulate(program, 2, topology=topology, ccl=with_queues(algorithm, **QUEUES))
