"""The chips of an LP: how much work it is to build them, and their bounds."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from runtime.core.simtime import NEVER_PS
from sip_node.chip.chip import chip_spec
from sip_node.chip.chip_model import ChipModel
from sip_node.chip.partition import Partition
from sip_node.chip.records.op_log import OpLog
from sip_node.kernel.exact import later_ps
from sip_node.pdes.promises import SendBound
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


def built(sips: int, lps: int) -> tuple[ChipModel, Partition]:
    """The chips of LP 0 of a ring, and the partition."""
    spec = chip_spec(small(system__sips__count=sips), data=False)
    each = sips // lps
    made = Partition([range(lp * each, (lp + 1) * each) for lp in range(lps)], spec)
    paths = made.forwarding_paths(0)
    sync = Sync(0, lps, made.channels_in(0), made.channels_out(0), paths)
    return ChipModel(0, made, sync, spec, {sip: OpLog(None) for sip in range(each)}), made


def least(bounds: Iterable[SendBound]) -> dict[tuple[int, int], int]:
    """(peer, n) -> the least bound of messages with n or more remaining hops."""
    times_ps: dict[tuple[int, int], int] = {}
    for peer, remaining_hops, time_ps in bounds:
        for n in range(remaining_hops + 1):
            times_ps[peer, n] = min(time_ps, times_ps.get((peer, n), time_ps))
    return times_ps


def of_all_sips(model: ChipModel, made: Partition, base_ps: int) -> Iterator[SendBound]:
    """The bounds of every egress of every SIP."""
    for sip, chip in model.chips.items():
        launch_ps, known_ps = chip.send_bounds.earliest_send_ps(base_ps)
        for target, egress in made.egresses(sip).items():
            for time_ps in (launch_ps, known_ps.get(target, NEVER_PS)):
                at_ps = later_ps(time_ps, egress.delay_ps)
                yield SendBound(egress.peer, egress.remaining_hops, at_ps)


@pytest.mark.parametrize("lps", [2, 4])
@pytest.mark.parametrize("sender", range(4))
def test_the_bounds_of_an_lp_are_the_least_of_all_its_sips(lps: int, sender: int) -> None:
    """A packet is on its way to the ports of a SIP of this LP, which is at the edge or inside."""
    for entrance_ps in (5_000, 20_000, 500_000):
        model, made = built(16, lps)
        for target in (15, 9):
            model.chips[sender].send_bounds.departed(target, entrance_ps)
        assert least(model.earliest_sends(4_000)) == least(of_all_sips(model, made, 4_000))


def test_bounds_of_sips_far_from_the_edge_are_not_computed_if_a_nearer_one_may_send_first() -> None:
    numbers: list[int] = []
    for sips in (16, 64):
        model, _ = built(sips, 2)
        for edge in (0, sips // 2 - 1):
            for target in (sips - 1, sips // 2):
                model.chips[edge].send_bounds.departed(target, 50_000)
        numbers.append(len(model.earliest_sends(4_000)))
    assert numbers[0] == numbers[1]
