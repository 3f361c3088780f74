"""Ports between SIPs: neighbours, the switch, forwarding, and FIFO on every link."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from runtime import tl, torch
from runtime.core import dtypes
from runtime.core.simtime import NEVER_PS
from runtime.core.trace import OpRecord
from runtime.device.launches.launch import launch_on
from runtime.model.topology import parse_topology
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.fabric.packet import Kind
from sip_node.chip.partition import Partition
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.engine import Engine
from tests.support.joined import ccl_text, message
from tests.support.links import Crossing, OpenEnds
from tests.support.packets import lone_packet
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

LONE_PE = {
    "sip__cube_mesh": {"w": 1, "h": 1},
    "cube__pe_layout": {
        "pe_per_corner": 1,
        "corners": ["NW"],
        "pos_mm": {"NW": [[1.0, 1.0]]},
    },
}
NBYTES = 32 << 10


class Edge:
    """The boundary of SIP 0 alone; what crosses its links is kept."""

    def __init__(self, sips: int = 3, **changes: object) -> None:
        topology = parse_topology(variant_text(**(LONE_PE | changes)), "topology.yaml", sips)
        self.engine = Engine()
        self.spec = chip_spec(topology, data=True)
        self.chip = Chip(self.spec, 0, self.engine, OpLog(None))
        self.ends = OpenEnds(self.chip, self.spec.sips.neighbours(0))

    def pass_on(self, target: int, size: int, *, at_ps: int = 0, tail_ps: int = 0) -> None:
        """A packet of SIP 2 for `target` is at our IO NoC."""
        packet = lone_packet(Kind.IPCQ_CREDIT, (2, 0), (target, 0), size)
        packet.entrance_ps = at_ps
        self.chip.send_bounds.departed(target, at_ps)
        self.engine.at(at_ps, self.chip.boundary.accept, packet, max(at_ps, tail_ps))

    def run(self) -> list[Crossing]:
        self.engine.run_before(NEVER_PS)
        return self.ends.crossings


def test_a_packet_arrives_a_lookahead_after_its_head_leaves() -> None:
    edge = Edge()
    edge.pass_on(1, 128, at_ps=7)
    [posted] = edge.run()
    # Two UCIe ports of 8 ns, 20 mm of wire, and the IO NoC of the neighbour with 2 ns.
    assert posted.time_ps - 7 == 2 * 8_000 + 200 + 2_000
    assert posted.time_ps - 7 == Partition(((0,), (1,), (2,)), edge.spec).channels_out(0)[1]


def test_packets_on_one_link_wait_for_each_other_and_are_numbered() -> None:
    edge = Edge()
    for _ in range(3):
        edge.pass_on(1, 1280)
    posted = edge.run()
    assert [crossing.seq for crossing in posted] == [0, 1, 2]
    assert [after.time_ps - before.time_ps for before, after in pairwise(posted)] == [
        10_000,
        10_000,
    ]


def test_links_to_different_neighbours_are_independent() -> None:
    edge = Edge()
    edge.pass_on(1, 1280)
    edge.pass_on(2, 1280)
    first, second = edge.run()
    assert (first.target, second.target) == (1, 2)
    assert first.time_ps == second.time_ps
    assert first.seq == second.seq == 0


def test_behind_a_switch_a_sip_has_one_port_for_all_it_sends() -> None:
    edge = Edge(system__sips__fabric="switch")
    edge.pass_on(1, 1280)
    edge.pass_on(2, 1280)
    first, second = edge.run()
    assert second.time_ps - first.time_ps == 10_000
    assert len(edge.chip.boundary.ports) == 1


def test_a_tail_that_comes_slowly_keeps_the_link_busy() -> None:
    edge = Edge()
    edge.pass_on(1, 128, tail_ps=50_000)
    edge.pass_on(1, 128)
    first, second = edge.run()
    assert second.time_ps - first.time_ps == 50_000


def torus_of_four(program: Callable[[int], None]) -> Simulation:
    text = variant_text(system__sips__topology="torus_2d", **LONE_PE)
    # By its import path the ring has the order of ranks, in which 1 and 2 are no neighbours.
    ccl = ccl_text("all_pes", topology="runtime.ccl.topologies.ring_1d")
    return simulate(program, 4, topology=text, ccl=ccl)


def remaining_hops(world: Simulation, sip: int, neighbour: int) -> list[OpRecord]:
    return [record for at, record in world.of(f"ucie.sip{neighbour}", "ipcq_data") if at == sip]


def test_a_sip_forwards_between_two_others_that_are_not_neighbours() -> None:
    def kernel(rank: int) -> None:
        if rank == 1:
            tl.send("global_E", message(1024))
        elif rank == 2:
            tl.recv("global_W", 1024, dtypes.int8)

    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        launch_on("one message", kernel, (rank,), [], [(0, 0)])
        torch.ahbm.synchronize()

    world = torus_of_four(program)
    # SIPs 0 1 / 2 3, columns first: 1 to 0, 0 to 2, one record for all packets. The credit goes
    # back 2 to 3, 3 to 1.
    ways = {
        (sip, neighbour): len(remaining_hops(world, sip, neighbour))
        for sip in range(4)
        for neighbour in range(4)
    }
    assert {way: count for way, count in ways.items() if count} == {(1, 0): 1, (0, 2): 1}
    credit_ways = {
        (sip, record.engine)
        for sip, records in world.records.items()
        for record in records
        if record.name == "ipcq_credit"
    }
    assert credit_ways == {(2, "ucie.sip3"), (3, "ucie.sip1")}


def stream_times(fabric: str, senders: tuple[int, ...]) -> list[int]:
    """Time that each of `senders` takes to send 32 KiB to its neighbour in the east, all at once,
    out of three SIPs.
    """

    def kernel(rank: int) -> None:
        if rank in senders:
            tl.send("global_E", message(NBYTES))
        if (rank - 1) % 3 in senders:
            for _ in range(NBYTES // 4096):
                with tl.scratch():
                    tl.recv("global_W", 4096, dtypes.int8)

    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        torch.ahbm.synchronize()
        launch_on("stream", kernel, (rank,), [], [(0, 0)])
        torch.ahbm.synchronize()

    text = variant_text(system__sips__fabric=fabric, **LONE_PE)
    world = simulate(program, 3, topology=text, ccl=ccl_text("all_pes", n_slots=64), data=False)
    took_ps = []
    for sender in senders:
        sent = [record for sip, record in world.of("pe_ipcq", "arrival") if sip == (sender + 1) % 3]
        took_ps.append(
            max(record.end_ps for record in sent) - min(record.start_ps for record in sent)
        )
    return took_ps


@pytest.mark.parametrize("fabric", ["direct", "switch"])
def test_neighbours_that_stream_to_different_sips_do_not_slow_each_other(fabric: str) -> None:
    alone = [stream_times(fabric, (sender,))[0] for sender in (0, 1)]
    assert stream_times(fabric, (0, 1)) == pytest.approx(alone, rel=0.02)
