"""The chips of an LP: how much work it is to build them."""

from dataclasses import replace

import pytest

from sip_node.chip.chip import chip_spec
from sip_node.chip.chip_model import ChipModel
from sip_node.chip.partition import Partition
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.sync import Sync
from tests.support.counted_fabric import CountedFabric
from tests.support.topologies import small


def steps_of_routes(sips: int, topology: str) -> int:
    """The steps along routes to build the first of two LPs."""
    machine = small(system__sips__count=sips, system__sips__topology=topology)
    fabric = CountedFabric(machine)
    spec = replace(chip_spec(machine, data=False), sips=fabric)
    halves = range(sips // 2), range(sips // 2, sips)
    made = Partition(halves, spec)
    sync = Sync(0, 2, made.channels_in(0), made.channels_out(0), made.forwarding_paths(0))
    ChipModel(0, made, sync, spec, {sip: OpLog(None) for sip in halves[0]})
    return fabric.reads


@pytest.mark.parametrize("topology", ["ring_1d", "torus_2d", "mesh_2d_no_wrap"])
def test_the_steps_to_build_an_lp_grow_with_the_pairs_of_sips(topology: str) -> None:
    few, many = steps_of_routes(16, topology), steps_of_routes(64, topology)
    # 16 times as many pairs; what grows with links alone only lowers the ratio.
    assert 0 < many <= 16 * few
