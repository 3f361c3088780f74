"""Components that are made when something first reaches them."""

import pytest

from kernbench.simulation import simulate
from runtime.core.coordinates import PeCoordinates
from runtime.model.topology import parse_topology
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.records.op_log import OpLog
from sip_node.chip.registry import is_late
from sip_node.pdes.engine import Engine
from tests.support.topologies import variant_text

ONE_CUBE = {"sip__cube_mesh": {"w": 1, "h": 1}}


def chip(**changes: object) -> Chip:
    topology = parse_topology(variant_text(**ONE_CUBE, **changes), "topology.yaml", 1)
    return Chip(chip_spec(topology, data=True), 0, Engine(), OpLog(None))


def test_a_pe_is_made_once_by_the_first_that_needs_it() -> None:
    sip = chip()
    assert sip.pes == []
    last, first = PeCoordinates(0, 0, 7), PeCoordinates(0, 0, 0)
    pe = sip.pe(last)
    assert sip.pe(last) is pe
    assert [each.coordinates for each in (sip.pe(first), *sip.pes)] == [first, first, last]


@pytest.mark.parametrize(
    "changes", [{"noc__flow_control": "credits"}, {"impl": {"pe": "sip_node.chip.pe.pe:Pe"}}]
)
def test_with_credits_or_classes_of_the_user_all_components_exist(changes: dict) -> None:
    assert len(chip(**changes).pes) == 8


def test_only_memories_and_pes_wait_for_a_packet() -> None:
    spec = chip_spec(parse_topology(variant_text(**ONE_CUBE), "topology.yaml", 1), data=True)
    kinds = {node.kind for node in spec.graph.nodes if is_late(node, spec)}
    assert kinds == {"pe", "hbm_ctrl", "sram"}


def test_a_run_makes_the_pes_that_it_uses() -> None:
    def program(rank: int) -> None:
        from kernbench import DPPolicy, torch

        torch.ones(4, dp=DPPolicy(cube="row_wise", pe="row_wise", num_cubes=1, num_pes=1)).add_(1)

    world = simulate(program, 1, topology=variant_text(**ONE_CUBE))
    assert [pe.coordinates for pe in world.node.chips[0].pes] == [PeCoordinates(0, 0, 0)]
