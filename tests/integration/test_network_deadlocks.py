"""Finite buffers: saturated networks end with the right data, and a wrong rule is diagnosed."""

from collections.abc import Callable

import numpy as np
import pytest

import sip_node.chip.chip as chip_module
from runtime import DPPolicy, tl, torch
from runtime.core.errors import NetworkDeadlock
from runtime.core.requests import PeDmaMsg
from runtime.device.rank.rank_state import running_rank
from runtime.diagnosis.deadlock import deadlock
from runtime.model.routing import Route
from runtime.model.sip_fabric import SipFabric
from runtime.model.virtual_layers import VirtualLayers
from sip_node.chip.ports import credited_ports
from tests.support.lps import reports_of
from tests.support.topologies import variant_text
from tests.support.world import simulate

TINY = {"noc__flow_control": "credits", "noc__vcs": 1, "noc__buffer_flits": 1}
# One PE at each of the eight routers beside the corners of the hole.
ROUND_THE_HOLE = {
    "NW": [[3.0, 5.0], [5.0, 3.0]],
    "NE": [[9.0, 5.0], [7.0, 3.0]],
    "SW": [[3.0, 7.0], [5.0, 9.0]],
    "SE": [[9.0, 7.0], [7.0, 9.0]],
}
HOLE = {
    "sip__cube_mesh": {"w": 1, "h": 1},
    "cube__pe_layout__pos_mm": ROUND_THE_HOLE,
    "packet_bytes": 16384,
    "system__sips__count": 1,
}
# Each PE stores to the slice of the PE past the next corner, in both directions round the hole.
ROUND = {0: 2, 3: 7, 6: 4, 5: 1, 2: 0, 1: 5, 4: 6, 7: 3}
LONE_CUBE = {"sip__cube_mesh": {"w": 1, "h": 1}, "cube__pe_layout__pe_per_corner": 1}


class OneLayer(VirtualLayers):
    """The wrong rule: all routes share their buffers."""

    def of(self, route: Route) -> tuple[int, ...]:
        return tuple(0 for _ in super().of(route))


def stores(
    targets: dict[int, int], nbytes: int, hops: int = 0, base: int = 1 << 20
) -> Callable[[int], None]:
    """PEs store to slices of the SIP `hops` further on the ring, all at once."""

    def program(rank: int) -> None:
        state = running_rank()
        sip = (rank + hops) % state.topology.sips
        requests = [
            PeDmaMsg(0, pe, "write", state.addresses.pe_hbm_addr(sip, 0, target, base), nbytes)
            for pe, target in targets.items()
        ]
        state.device.wait(state.device.submit(requests, "stores"))

    return program


@pytest.mark.slow
def test_stores_round_the_hole_need_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    topology, program = variant_text(**HOLE, **TINY), stores(ROUND, 64 << 10)
    assert simulate(program, 1, topology=topology).time_ps > 0
    monkeypatch.setattr(chip_module, "VirtualLayers", OneLayer)
    with pytest.raises(NetworkDeadlock) as caught:
        simulate(program, 1, topology=topology)
    cycle = [buffer for buffer, _ in caught.value.cycle]
    assert len(set(cycle)) == len(cycle) >= 8
    # Each buffer of the cycle feeds the next one, or has the channel that its predecessor needs.
    assert all(buffer.endswith("(requests, layer 0), VC 0") for buffer in cycle)
    assert "WRITE of 16,384 B from sip 0 cube0.pe" in str(caught.value)
    assert caught.value.time_ps > 0


DEALS = [((0, 1, 2, 3, 4),), ((0, 3), (1,), (2, 4))]


@pytest.mark.slow
def test_stores_round_a_ring_of_sips_need_a_dateline(monkeypatch: pytest.MonkeyPatch) -> None:
    # A buffer for a single packet: it is full as soon as all have sent one.
    monkeypatch.setattr(credited_ports, "ingress_bytes", lambda topology: topology.packet_bytes)
    topology = variant_text(**LONE_CUBE, **TINY, system__sips__count=5)
    program = stores({0: 1}, 16 << 10, hops=2)
    results = [
        [(report.finished, report.broken_law, report.digest, report.time_ps) for report in reports]
        for deal in DEALS
        for reports in [reports_of(program, deal, topology, seed=3, remote_dma=True)]
    ]
    assert results[0][0][:2] == (True, "")
    assert results[1:] == results[:1]
    monkeypatch.setattr(SipFabric, "layer", lambda *_: 0)
    errors = [
        deadlock(reports_of(program, deal, topology, seed=3, remote_dma=True)) for deal in DEALS
    ]
    assert isinstance(errors[0], NetworkDeadlock)
    assert len({str(error) for error in errors}) == 1
    buffers = [buffer for buffer, _ in errors[0].cycle]
    for sip in range(5):
        assert f"sip {sip} ingress from sip {(sip - 1) % 5} (requests, layer 0)" in buffers
        assert f"sip {sip} egress to sip {(sip + 1) % 5} (requests, layer 0)" in buffers


WORDS = 192


def copy_all(source: tl.Pointer, target: tl.Pointer, pes: int, total: int) -> None:
    """PE p copies block p of the shard of every PE, beginning behind its own: all to all."""
    own = tl.program_id(1) * pes + tl.program_id(0)
    for step in range(1, total + 1):
        at = (own + step) % total * total * WORDS + own * WORDS
        tl.store(target + at, tl.load(source + at, WORDS))


def copy_to_one(source: tl.Pointer, target: tl.Pointer, pes: int, total: int) -> None:
    """Every PE copies its shard, piece by piece, to the one PE with all of the target."""
    at = (tl.program_id(1) * pes + tl.program_id(0)) * total * WORDS
    for step in range(total):
        tl.store(target + at + step * WORDS, tl.load(source + at + step * WORDS, WORDS))


@pytest.mark.slow
@pytest.mark.parametrize(("cubes", "buffer_flits"), [(1, 2), (4, 1)])
def test_saturated_chips_with_tiny_buffers_end_with_the_right_data(
    cubes: int, buffer_flits: int
) -> None:
    mesh = {"w": min(cubes, 2), "h": max(1, cubes // 2)}
    topology = variant_text(
        **TINY
        | {
            "sip__cube_mesh": mesh,
            "noc__buffer_flits": buffer_flits,
            "cube__pe_layout__pe_per_corner": 1,
        }
    )
    total = 4 * cubes

    def program(_rank: int) -> None:
        split = DPPolicy(cube="row_wise", pe="row_wise")
        given = np.arange(total * total * WORDS, dtype=np.int32).reshape(total, -1)
        x = torch.from_numpy(given, dp=split)
        everywhere = torch.zeros(given.shape, dtype=torch.int32, dp=split)
        on_one = torch.zeros(given.shape, dtype=torch.int32, dp=DPPolicy(num_cubes=1, num_pes=1))
        torch.launch("all to all", copy_all, x, everywhere, 4, total)
        torch.launch("all to one", copy_to_one, x, on_one, 4, total)
        assert (everywhere.numpy() == given).all()
        assert (on_one.numpy() == given).all()

    simulate(program, 1, topology=topology)
