"""Messages of many slots: credits bound their rate, and no stream starves another one."""

from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime import DPPolicy, tl, torch
from runtime.core import dtypes
from runtime.device.launches.launch import launch_on
from tests.support.joined import ccl_text, message
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

LONE_CUBE: dict[str, Any] = {"sip__cube_mesh": {"w": 1, "h": 1}}
SLOT_BYTES, SLOTS_OF_MESSAGE = 4096, 48
LINK_GBS = 128.0
ONE_WAY, TWO_WAYS = [(0, 1)], [(0, 1), (1, 0)]
FORWARDED, FORWARDED_TWO_WAYS = [(0, 2)], [(0, 2), (2, 0)]
Flow = tuple[int, int]


def rates(flows: Sequence[Flow], n_slots: int, flow_control: str = "unlimited") -> list[float]:
    """GB/s of a message of each flow (source, target), sent at once, over a ring of four SIPs."""
    nbytes = SLOTS_OF_MESSAGE * SLOT_BYTES

    def kernel(rank: int) -> None:
        pending = [
            tl.recv_async(f"global_rank_{source}", nbytes, dtypes.int8)
            for source, target in flows
            if target == rank
        ]
        pending += [
            tl.send_async(f"global_rank_{target}", message(nbytes))
            for source, target in flows
            if source == rank
        ]
        for each in pending:
            each.wait()

    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        launch_on("stream", kernel, (rank,), [], [(0, 0)])
        torch.ahbm.synchronize()

    queues = ccl_text("all_pes", topology="runtime.ccl.topologies.fully_connected", n_slots=n_slots)
    text = variant_text(**LONE_CUBE, noc__flow_control=flow_control)
    world = simulate(program, 4, topology=text, ccl=queues, data=False)
    return [_rate(world, flow, n_slots) for flow in flows]


def _rate(world: Simulation, flow: Flow, n_slots: int) -> float:
    """The steady rate: the whole fillings of the ring in the second half of the message."""
    arrivals = sorted(
        record.end_ps
        for _, record in world.of("pe_ipcq", "arrival")
        if record.flow is not None and record.flow[:2] == flow
    )
    slots = (SLOTS_OF_MESSAGE // 2 - 1) // n_slots * n_slots
    return slots * SLOT_BYTES * 1000 / (arrivals[-1] - arrivals[-1 - slots])


def costs() -> KernelCosts:
    return KernelCosts(TopologyFile(yaml.safe_load(variant_text(**LONE_CUBE))), SLOT_BYTES)


def round_trip_ps(hops: int) -> int:
    """A slot, its copy, and its credit; the path of all is that to the SIP `hops` links away."""
    own = costs()
    route = own.to_sip(hops)
    slot_ps = own.slot_ps(route, SLOT_BYTES)
    return slot_ps + own.copy_ps(SLOT_BYTES) + own.times.announcement_ps(route)


@pytest.mark.parametrize("hops", [1, 2])
def test_a_ring_of_n_slots_carries_n_slots_in_a_round_trip(hops: int) -> None:
    for n_slots in (1, 2, 4):
        expected = n_slots * SLOT_BYTES * 1000 / round_trip_ps(hops)
        assert rates([(0, hops)], n_slots) == pytest.approx([expected], rel=0.01)


@pytest.mark.parametrize("flows", [ONE_WAY, TWO_WAYS, FORWARDED, FORWARDED_TWO_WAYS])
def test_routers_with_credits_do_not_serialise_the_slots_of_a_message(flows: list[Flow]) -> None:
    (alone, *_) = rates(flows[:1], 1, "credits")
    for n_slots in (1, 3):
        expected = [n_slots * alone] * len(flows)
        assert rates(flows, n_slots, "credits") == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("flows", "hops"), [(TWO_WAYS, 1), (FORWARDED_TWO_WAYS, 2)])
def test_credits_wait_at_most_for_the_slots_of_the_other_direction(
    flows: list[Flow], hops: int
) -> None:
    own, link_ps = costs(), SLOT_BYTES * 1000 / LINK_GBS
    for n_slots in (2, 4, 8):
        # All credits come behind a full ring of the other direction, then the next slots leave.
        behind_ps = n_slots * link_ps + own.alpha_ps(own.to_sip(hops))
        least = n_slots * SLOT_BYTES * 1000 / max(round_trip_ps(hops), behind_ps)
        assert min(rates(flows, n_slots)) > 0.93 * least


@pytest.mark.parametrize("flow_control", ["unlimited", "credits"])
def test_streams_of_all_directions_get_equal_shares(flow_control: str) -> None:
    every = [(source, (source + hops) % 4) for hops in (1, 2, 3) for source in range(4)]
    shares = rates(every, 4, flow_control)
    assert min(shares) > 0.8 * max(shares)


@pytest.mark.parametrize("flow_control", ["unlimited", "credits"])
def test_a_message_of_torch_from_the_farthest_cube_fills_the_link(flow_control: str) -> None:
    nbytes = 1 << 19

    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        policy = DPPolicy(cube="column_wise", pe="column_wise", num_cubes=1, num_pes=2)
        tensor = torch.zeros(nbytes >> 10, 1024, dtype=torch.int8, dp=policy)
        torch.ahbm.synchronize()
        if rank == 0:
            torch.distributed.send(tensor, 1)
        else:
            torch.distributed.recv(tensor, 0)

    text = variant_text(noc__flow_control=flow_control)
    world = simulate(program, 2, topology=text, data=False)
    loads, copies = world.of("pe_dma", "load"), world.of("pe_dma", "ipcq_recv")
    span_ps = max(each.end_ps for _, each in copies) - min(each.start_ps for _, each in loads)
    # The rest is one load, one round trip and one copy.
    assert nbytes * 1000 / span_ps > 0.85 * LINK_GBS
